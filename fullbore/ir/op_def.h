#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/scalar.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// What passes and devices may know of an op without knowing its name. Bit flags.
enum class Tag : uint32_t {
  none = 0,
  elementwise = 1 << 0,  ///< one ScalarOp per element; all shapes equal
  reduction = 1 << 1,    ///< combines elements along `axes`
  movement = 1 << 2,     ///< every output element is one input element, or a fixed value
  contraction = 1 << 3,  ///< sums of products of the first OpDef::contracted_operands operands
  composite = 1 << 4,    ///< defined by `decompose`
  region = 1 << 5,       ///< has a body
  source = 1 << 6,       ///< no inputs
  commutative = 1 << 7,
  zero_gradient = 1 << 8,  ///< the derivative is zero or undefined: cotangents stop here
  identity = 1 << 9        ///< output equals first input (stop_gradient, reshape): no arithmetic
};
constexpr Tag operator|(Tag a, Tag b) {
  return static_cast<Tag>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has_tag(Tag set, Tag tag) {
  return (static_cast<uint32_t>(set) & static_cast<uint32_t>(tag)) != 0;
}

class OpHandle;

/// A call that is being checked: what `infer` sees.
struct OpCall {
  const OpDef& op;
  std::span<const TensorType> inputs;
  const Attributes& attributes;
  const Graph* body;
  SourceLoc loc;

  /// Throws UsageError "softmax: <message> (models/example.cpp:141)".
  [[noreturn]] void fail(const std::string& message) const;
};

struct Cost {
  double flops = 0;
  double bytes = 0;  ///< least traffic: every operand read once, every result written once
};

/// What `cost` sees: a node of a graph, by its types.
struct CostCall {
  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attributes& attributes;
  const Graph* body;
};

/// What `reference` sees. Outputs are allocated with their types and zero; it fills them in double.
struct ReferenceCall {
  std::vector<const Literal*> inputs;
  std::vector<Literal> outputs;
  const Attributes& attributes;
  const Graph* body;
  /// For ops that accumulate: per output, per element, (number of terms) * sum of |terms|, the
  /// magnitude that an accumulator's rounding multiplies (Higham 2002, section 3.1). Empty where
  /// the result is a rounding of one operation.
  std::vector<std::vector<double>> magnitudes;
};

/// What `vjp` sees: everything as Tensors of the graph under construction.
struct VjpCall {
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> cotangents;  ///< one per output; invalid() where nothing flows
  const std::vector<bool>& wanted;     ///< per input: is its cotangent needed?
  const Attributes& attributes;
  SourceLoc loc;
};

struct DecomposeCall {
  std::span<const Tensor> inputs;
  const Attributes& attributes;
  SourceLoc loc;
};

/// How a sample's operand is filled.
struct SampleInput {
  enum class Fill : uint8_t { normal, uniform, integers, given };
  TensorType type;
  Fill fill = Fill::normal;
  double low = 0;              ///< of uniform and integers
  double high = 1;             ///< exclusive
  std::vector<double> values;  ///< of given
  bool differentiable = true;  ///< checked by finite differences if floating

  static SampleInput normal(TensorType type) { return {.type = std::move(type), .values = {}}; }
  static SampleInput uniform(TensorType type, double low, double high) {
    return {std::move(type), Fill::uniform, low, high, {}, true};
  }
  static SampleInput integers(TensorType type, double low, double high) {
    return {std::move(type), Fill::integers, low, high, {}, false};
  }
  static SampleInput given(TensorType type, std::vector<double> values) {
    return {std::move(type), Fill::given, 0, 0, std::move(values), true};
  }
  SampleInput constant() && {
    differentiable = false;
    return std::move(*this);
  }
};

/// One call of the op that every test suite and benchmark makes. Floating operands and float-valued
/// `dtype` attributes written as f32 stand for every dtype in OpDef::dtypes.
struct Sample {
  std::string why;
  std::vector<SampleInput> inputs;
  Attributes attributes;
  std::shared_ptr<const Graph> body = nullptr;
  bool gradcheck = true;  ///< false where finite differences do not apply (ties, huge operands)
};

/// A call that must be refused, and a part of the message.
struct ErrorSample {
  std::string why;
  std::vector<TensorType> inputs;
  Attributes attributes;
  std::string message_contains;
};

/// Everything that is true of an op on any machine. One file under ops/ each, registered by
/// OpRegistrar; a new op edits no pass, no device and no neighbour.
struct OpDef {
  std::string_view name;
  std::string_view summary;  ///< one line for `fullbore ops`
  Tag tags = Tag::none;
  ScalarOp scalar = ScalarOp::add;  ///< of elementwise ops; the combining op of reductions

  std::vector<TensorType> (*infer)(const OpCall&) = nullptr;
  /// Cotangents of the inputs (invalid Tensor where none flows or none is wanted). Null with a
  /// `decompose`: differentiated through the decomposition. Null with zero_gradient: none.
  std::vector<Tensor> (*vjp)(const VjpCall&) = nullptr;
  std::vector<Tensor> (*decompose)(const DecomposeCall&) = nullptr;
  /// Null: elementwise cost (scalar_op_flops per element), all operands moved once. Composites:
  /// null means the sum over the decomposition.
  Cost (*cost)(const CostCall&) = nullptr;
  /// Null: elementwise through evaluate_*, composites through their decomposition.
  void (*reference)(ReferenceCall&) = nullptr;

  std::vector<Sample> (*samples)() = nullptr;
  std::vector<ErrorSample> (*error_samples)() = nullptr;
  /// Of contractions: the operands that are multiplied, which may be of low precision. Those behind
  /// them have their own dtype.
  size_t contracted_operands = 2;
  /// An op whose first results are this one's, given equal operands and attributes: the gradient of a
  /// loss that makes the loss on its way. Where a graph asks for both, it serves for both.
  const OpHandle* included_in = nullptr;
  /// Floating dtypes that samples are run in. Empty: none (integer and boolean ops).
  std::vector<DType> dtypes = {DType::f64, DType::f32, DType::bf16, DType::f16};

  bool is(Tag tag) const { return has_tag(tags, tag); }
};

/// Registers an op while the library is loaded: `static const OpRegistrar registrar(OpDef{...});`
class OpRegistrar {
 public:
  explicit OpRegistrar(OpDef op);
};

const OpDef* find_op(std::string_view name);  ///< null if there is none
const OpDef& get_op(std::string_view name);   ///< aborts if there is none
std::vector<const OpDef*> all_ops();          ///< sorted by name

/// A composite's decomposition on operands of these types, as a graph: inputs "x0", "x1", ...,
/// outputs "y0", "y1", ...
Graph decomposition(const OpDef& op, std::span<const TensorType> inputs,
                    const Attributes& attributes);

/// Cost of one node by its op's rule or the default rules above; a loop's is its iterations times its
/// body's; `fused` has the flops of its body and the bytes of its operands; Tag::identity is free.
Cost node_cost(const Graph& graph, const Node& node);
Cost graph_cost(const Graph& graph);

}  // namespace fullbore
