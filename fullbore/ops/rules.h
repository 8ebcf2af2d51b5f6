#pragma once
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

/// What the ops share: checks of operands in the words of the user, builders, samples, and walks
/// over elements for references. Operands have the names of ops.h: x, or a and b.
namespace fullbore {

// --- checks within `infer`: each throws UsageError through OpCall::fail ---------------------------
enum class DTypeSet : uint8_t { floating, integer, numeric, boolean, integer_or_boolean, any };
bool contains(DTypeSet set, DType dtype);

/// "x f32[8,4]"
std::string operand_text(std::string_view name, const TensorType& type);

void require_inputs(const OpCall& call, size_t count);
void require_inputs(const OpCall& call, size_t least, size_t most);
/// "exp: needs a floating x, got i32[4]"
void require_dtype(const OpCall& call, size_t input, std::string_view name, DTypeSet set);
/// "matmul: needs x of rank 2, got f32[4]"
void require_rank(const OpCall& call, size_t input, std::string_view name, int rank);
void require_rank_at_least(const OpCall& call, size_t input, std::string_view name, int rank);
/// "add: a f32[4] and b i32[4] differ in dtype"
void require_same_dtype(const OpCall& call, size_t first, std::string_view first_name,
                        size_t second, std::string_view second_name);
/// "add: a f32[4] and b f32[5] differ in shape"
void require_same_shape(const OpCall& call, size_t first, std::string_view first_name,
                        size_t second, std::string_view second_name);
/// The axis, which must be in [0, rank): "reverse: axis 3 out of range [-3, 2] for x f32[8,4,2]".
int require_axis(const OpCall& call, int64_t axis, std::string_view name, const TensorType& type);
/// Attribute `name` of type T, which a graph's text may have forgotten.
template <class T>
const T& require_attribute(const OpCall& call, std::string_view name) {
  for (const Attributes::Entry& entry : call.attributes.entries())
    if (entry.name == name && std::holds_alternative<T>(entry.value))
      return std::get<T>(entry.value);
  call.fail(fmt::format("needs attribute '{}'", name));
}
/// Attribute `shape`: no negative extents, at most 2^48 elements.
Shape require_shape_attribute(const OpCall& call);
/// Fails if the shape has more than 2^48 elements: sizes in bytes must fit 64 bits with ease.
void require_elements(const OpCall& call, const Shape& shape);

// --- infer rules of elementwise ops: equal shapes, equal dtypes -----------------------------------
std::vector<TensorType> infer_floating_unary(const OpCall& call);
std::vector<TensorType> infer_numeric_unary(const OpCall& call);
std::vector<TensorType> infer_floating_binary(const OpCall& call);
std::vector<TensorType> infer_numeric_binary(const OpCall& call);
std::vector<TensorType> infer_integer_binary(const OpCall& call);
std::vector<TensorType> infer_boolean_binary(const OpCall& call);

// --- builders -------------------------------------------------------------------------------------
/// Throws "exp: x is an empty Tensor" instead of the check that any use of one would fail.
void require_tensor(std::string_view op, std::string_view name, Tensor x, SourceLoc loc);
/// The innermost of the operands' builders: the graph that a node reading them all belongs to.
GraphBuilder& innermost_builder(std::string_view op, std::span<const Tensor> operands,
                                SourceLoc loc);
/// Emits the op in the innermost graph of its operands; checks that none is empty.
std::vector<Tensor> apply_all(std::string_view op, std::span<const Tensor> operands,
                              Attributes attributes, SourceLoc loc,
                              std::shared_ptr<const Graph> body = nullptr);
/// Its only result.
Tensor apply(std::string_view op, std::initializer_list<Tensor> operands, Attributes attributes,
             SourceLoc loc);
/// Elementwise op on operands broadcast to their common shape; numbers take the dtype of the first
/// tensor. `names` of the operands, for messages.
Tensor apply_broadcast(std::string_view op, std::span<const Operand> operands,
                       std::initializer_list<std::string_view> names = {"a", "b"});
/// A rank-0 constant of the dtype; UsageError if the number cannot be one of its values at all
/// (0.5 or 300 as u8, 1e6 as f16). Rounding is no error.
Tensor number_tensor(std::string_view op, GraphBuilder& builder, DType dtype, double number,
                     SourceLoc loc);
/// An axis counted from the end as one counted from the front. One that is out of range stays as it
/// is, for `infer` to name.
int64_t normal_axis(int64_t axis, int rank);
std::vector<int64_t> normal_axes(std::vector<int64_t> axes, int rank);
/// Numpy's common shape, or nothing.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);

// --- samples --------------------------------------------------------------------------------------
/// The operands in each of the shapes that elementwise kernels are likely to get wrong: 0 and 1
/// elements, odd sizes, one beside the widths of vectors and unrolled loops, several ranks.
std::vector<Sample> elementwise_samples(const std::vector<SampleInput>& operands,
                                        const Attributes& attributes = {});
/// A sample of operands given element by element, f32 [n] each; finite differences do not apply.
Sample given_sample(std::string why, const std::vector<std::vector<double>>& operands,
                    Attributes attributes = {});
/// `more` appended to `samples`.
std::vector<Sample> with(std::vector<Sample> samples, std::vector<Sample> more);

std::vector<ErrorSample> floating_unary_errors();
std::vector<ErrorSample> numeric_unary_errors();
std::vector<ErrorSample> floating_binary_errors();
std::vector<ErrorSample> numeric_binary_errors();
std::vector<ErrorSample> integer_binary_errors();
std::vector<ErrorSample> boolean_binary_errors();

// --- references -----------------------------------------------------------------------------------
/// Calls visit(index, flat) for each element in row-major order.
template <class Visit>
void for_each_index(const Shape& shape, const Visit& visit) {
  if (shape.elements() == 0) return;
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t flat = 0;; ++flat) {
    visit(std::as_const(index), flat);
    int axis = shape.rank() - 1;
    for (; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < shape[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
    if (axis < 0) return;
  }
}
/// Sum of index[i] * strides[i].
int64_t flat_index(const std::vector<int64_t>& index, const std::vector<int64_t>& strides);
/// to[i] = from[j]; both floating or both not. Keeps all 64 bits of integers.
void copy_element(Literal& to, int64_t i, const Literal& from, int64_t j);

/// One axis of a shape seen as [outer, extent, inner].
struct AxisView {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
  AxisView(const Shape& shape, int axis);
  int64_t at(int64_t o, int64_t i, int64_t n) const { return (o * extent + i) * inner + n; }
};

// --- costs ----------------------------------------------------------------------------------------
/// No arithmetic; reads as many bytes as it writes.
Cost movement_cost(const CostCall& call);
/// No arithmetic, every operand read once and every result written once.
Cost copy_cost(const CostCall& call);

}  // namespace fullbore
