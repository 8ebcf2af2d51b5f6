#include "fullbore/ops/rules.h"

#include <algorithm>
#include <cmath>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/ops/operand_names.h"

namespace fullbore {
namespace {

std::string_view set_text(DTypeSet set) {
  switch (set) {
    case DTypeSet::floating: return "floating";
    case DTypeSet::integer: return "integer";
    case DTypeSet::numeric: return "numeric";
    case DTypeSet::boolean: return "bool";
    case DTypeSet::integer_or_boolean: return "integer or bool";
    case DTypeSet::any: return "any";
  }
  FB_CHECK(false, "dtype set {}", static_cast<int>(set));
}

std::vector<TensorType> infer_unary(const OpCall& call, DTypeSet set) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", set);
  return {call.inputs[0]};
}

std::vector<TensorType> infer_binary(const OpCall& call, DTypeSet set) {
  require_inputs(call, 2);
  require_dtype(call, 0, "a", set);
  require_same_dtype(call, 0, "a", 1, "b");
  require_same_shape(call, 0, "a", 1, "b");
  return {call.inputs[0]};
}

// Is `outer` the builder itself or one of those that enclose it?
bool encloses(const GraphBuilder* outer, const GraphBuilder* builder) {
  for (; builder; builder = builder->outer())
    if (builder == outer) return true;
  return false;
}

std::string operand_name(size_t count, size_t index) {
  if (count == 1) return "x";
  return std::string(1, static_cast<char>('a' + index));
}

}  // namespace

bool contains(DTypeSet set, DType dtype) {
  switch (set) {
    case DTypeSet::floating: return is_floating(dtype);
    case DTypeSet::integer: return is_integer(dtype);
    case DTypeSet::numeric: return is_floating(dtype) || is_integer(dtype);
    case DTypeSet::boolean: return dtype == DType::boolean;
    case DTypeSet::integer_or_boolean: return !is_floating(dtype);
    case DTypeSet::any: return true;
  }
  FB_CHECK(false, "dtype set {}", static_cast<int>(set));
}

std::string operand_text(std::string_view name, const TensorType& type) {
  OperandNames::note(name, type);
  return fmt::format("{} {}", name, type.text());
}

void require_inputs(const OpCall& call, size_t count) { require_inputs(call, count, count); }

void require_inputs(const OpCall& call, size_t least, size_t most) {
  const size_t found = call.inputs.size();
  if (found >= least && found <= most) return;
  const std::string wanted =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  call.fail(fmt::format("needs {} operands, got {}", wanted, found));
}

void require_dtype(const OpCall& call, size_t input, std::string_view name, DTypeSet set) {
  const TensorType& type = call.inputs[input];
  OperandNames::note(name, type);
  if (!contains(set, type.dtype))
    call.fail(fmt::format("needs {} {}, got {}", set_text(set), name, type.text()));
}

void require_rank(const OpCall& call, size_t input, std::string_view name, int rank) {
  const TensorType& type = call.inputs[input];
  OperandNames::note(name, type);
  if (type.shape.rank() != rank)
    call.fail(fmt::format("needs {} of rank {}, got {}", name, rank, type.text()));
}

void require_rank_at_least(const OpCall& call, size_t input, std::string_view name, int rank) {
  const TensorType& type = call.inputs[input];
  OperandNames::note(name, type);
  if (type.shape.rank() < rank)
    call.fail(fmt::format("needs {} of rank {} or more, got {}", name, rank, type.text()));
}

void require_same_dtype(const OpCall& call, size_t first, std::string_view first_name,
                        size_t second, std::string_view second_name) {
  OperandNames::note(first_name, call.inputs[first]);
  OperandNames::note(second_name, call.inputs[second]);
  if (call.inputs[first].dtype != call.inputs[second].dtype)
    call.fail(fmt::format("{} and {} differ in dtype", operand_text(first_name, call.inputs[first]),
                          operand_text(second_name, call.inputs[second])));
}

void require_same_shape(const OpCall& call, size_t first, std::string_view first_name,
                        size_t second, std::string_view second_name) {
  OperandNames::note(first_name, call.inputs[first]);
  OperandNames::note(second_name, call.inputs[second]);
  if (call.inputs[first].shape != call.inputs[second].shape)
    call.fail(fmt::format("{} and {} differ in shape", operand_text(first_name, call.inputs[first]),
                          operand_text(second_name, call.inputs[second])));
}

int require_axis(const OpCall& call, int64_t axis, std::string_view name, const TensorType& type) {
  OperandNames::note(name, type);
  const int rank = type.shape.rank();
  if (rank == 0)
    call.fail(fmt::format("axis {} of {}, which has no axes", axis, operand_text(name, type)));
  if (axis < -rank || axis >= rank)
    call.fail(fmt::format("axis {} out of range [{}, {}] for {}", axis, -rank, rank - 1,
                          operand_text(name, type)));
  if (axis < 0) call.fail(fmt::format("axis {} of a node must count from the front", axis));
  return static_cast<int>(axis);
}

void require_elements(const OpCall& call, const Shape& shape) {
  double elements = 1;
  for (int64_t extent : shape.dims()) elements *= static_cast<double>(extent);
  if (elements > 0x1p48) call.fail(fmt::format("{} has more than 2^48 elements", shape.text()));
}

Shape require_shape_attribute(const OpCall& call) {
  Shape shape(require_attribute<std::vector<int64_t>>(call, "shape"));
  for (int64_t extent : shape.dims())
    if (extent < 0) call.fail(fmt::format("negative extent in shape {}", shape.text()));
  require_elements(call, shape);
  return shape;
}

std::vector<TensorType> infer_floating_unary(const OpCall& call) {
  return infer_unary(call, DTypeSet::floating);
}
std::vector<TensorType> infer_numeric_unary(const OpCall& call) {
  return infer_unary(call, DTypeSet::numeric);
}
std::vector<TensorType> infer_floating_binary(const OpCall& call) {
  return infer_binary(call, DTypeSet::floating);
}
std::vector<TensorType> infer_numeric_binary(const OpCall& call) {
  return infer_binary(call, DTypeSet::numeric);
}
std::vector<TensorType> infer_integer_binary(const OpCall& call) {
  return infer_binary(call, DTypeSet::integer);
}
std::vector<TensorType> infer_boolean_binary(const OpCall& call) {
  return infer_binary(call, DTypeSet::boolean);
}

void require_tensor(std::string_view op, std::string_view name, Tensor x, SourceLoc loc) {
  if (!x.valid()) throw UsageError(fmt::format("{}: {} is an empty Tensor", op, name), loc);
  if (!x.alive())
    throw UsageError(fmt::format("{}: {} belongs to a trace or the body of a loop that has ended; "
                                 "only what it returns can be used after it",
                                 op, name),
                     loc);
}

GraphBuilder& innermost_builder(std::string_view op, std::span<const Tensor> operands,
                                SourceLoc loc) {
  FB_CHECK(!operands.empty(), "{} has no operands to take the graph from", op);
  for (size_t i = 0; i < operands.size(); ++i)
    require_tensor(op, operand_name(operands.size(), i), operands[i], loc);
  GraphBuilder* innermost = &operands[0].builder();
  for (const Tensor& operand : operands)
    if (encloses(innermost, &operand.builder())) innermost = &operand.builder();
  for (const Tensor& operand : operands)
    if (!encloses(&operand.builder(), innermost))
      throw UsageError(fmt::format("{}: operands of graphs '{}' and '{}', neither of which "
                                   "encloses the other",
                                   op, operand.builder().graph().name(), innermost->graph().name()),
                       loc);
  return *innermost;
}

std::vector<Tensor> apply_all(std::string_view op, std::span<const Tensor> operands,
                              Attributes attributes, SourceLoc loc,
                              std::shared_ptr<const Graph> body) {
  return innermost_builder(op, operands, loc)
      .emit(get_op(op), operands, std::move(attributes), loc, std::move(body));
}

Tensor apply(std::string_view op, std::initializer_list<Tensor> operands, Attributes attributes,
             SourceLoc loc) {
  return apply_all(op, std::span(operands.begin(), operands.size()), std::move(attributes), loc)[0];
}

Tensor number_tensor(std::string_view op, GraphBuilder& builder, DType dtype, double number,
                     SourceLoc loc) {
  const double stored = round_to_dtype(number, dtype);
  const bool lost =
      is_floating(dtype) ? std::isfinite(number) && !std::isfinite(stored) : stored != number;
  if (lost) throw UsageError(fmt::format("{}: {} is no {}", op, number, dtype_name(dtype)), loc);
  return constant(builder, {dtype, {}}, {number}, loc);
}

Tensor apply_broadcast(std::string_view op, std::span<const Operand> operands,
                       std::initializer_list<std::string_view> names) {
  FB_CHECK(operands.size() == names.size(), "{}", op);
  const SourceLoc loc = operands[0].loc;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_number) continue;
    require_tensor(op, names.begin()[i], operands[i].tensor, operands[i].loc);
    tensors.push_back(operands[i].tensor);
  }
  if (tensors.empty()) throw UsageError(fmt::format("{}: no operand is a Tensor", op), loc);
  GraphBuilder& builder = innermost_builder(op, tensors, loc);
  const DType dtype = tensors[0].dtype();

  Shape shape;
  for (const Tensor& tensor : tensors) {
    const std::optional<Shape> common = broadcast_shapes(shape, tensor.shape());
    if (!common) {
      std::vector<std::string> texts;
      for (size_t i = 0; i < operands.size(); ++i)
        if (!operands[i].is_number)
          texts.push_back(operand_text(names.begin()[i], operands[i].tensor.type()));
      throw UsageError(fmt::format("{}: {} do not broadcast", op, fmt::join(texts, " and ")), loc);
    }
    shape = *common;
  }
  std::vector<Tensor> broadcast;
  for (const Operand& operand : operands) {
    const Tensor tensor = operand.is_number
                              ? number_tensor(op, builder, dtype, operand.number, operand.loc)
                              : operand.tensor;
    broadcast.push_back(tensor.shape() == shape ? tensor
                                                : broadcast_to(tensor, shape, operand.loc));
  }
  return builder.emit(get_op(op), broadcast, {}, loc)[0];
}

int64_t normal_axis(int64_t axis, int rank) {
  return axis < 0 && axis >= -rank ? axis + rank : axis;
}

std::vector<int64_t> normal_axes(std::vector<int64_t> axes, int rank) {
  for (int64_t& axis : axes) axis = normal_axis(axis, rank);
  return axes;
}

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t from_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t from_b = i <= b.rank() ? b[b.rank() - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    dims[static_cast<size_t>(rank - i)] = from_a == 1 ? from_b : from_a;
  }
  return Shape(std::move(dims));
}

int64_t flat_index(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t flat = 0;
  for (size_t i = 0; i < index.size(); ++i) flat += index[i] * strides[i];
  return flat;
}

void copy_element(Literal& to, int64_t i, const Literal& from, int64_t j) {
  if (to.floating())
    to.reals()[static_cast<size_t>(i)] = from.reals()[static_cast<size_t>(j)];
  else
    to.integers()[static_cast<size_t>(i)] = from.integers()[static_cast<size_t>(j)];
}

AxisView::AxisView(const Shape& shape, int axis)
    : outer(shape.slice(0, axis).elements()),
      extent(shape[axis]),
      inner(shape.slice(axis + 1, shape.rank()).elements()) {}

Cost movement_cost(const CostCall& call) {
  double bytes = 0;
  for (const TensorType& type : call.outputs) bytes += 2 * static_cast<double>(type.bytes());
  return {0, bytes};
}

Cost copy_cost(const CostCall& call) {
  double bytes = 0;
  for (const TensorType& type : call.inputs) bytes += static_cast<double>(type.bytes());
  for (const TensorType& type : call.outputs) bytes += static_cast<double>(type.bytes());
  return {0, bytes};
}

}  // namespace fullbore
