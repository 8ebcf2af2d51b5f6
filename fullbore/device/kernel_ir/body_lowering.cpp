#include "fullbore/device/kernel_ir/body_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fullbore/base/check.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

bool walks_rows(const Node& node) {
  return node.op->is(Tag::reduction) || node.op == op::argmax || node.op == op::cumsum;
}

std::vector<int64_t> reduced_axes(const Node& node) {
  if (node.attributes.has("axes")) return node.attributes.get<std::vector<int64_t>>("axes");
  return {node.attributes.get<int64_t>("axis")};
}

// What ops combine by, in the accumulator's type.
bool can_accumulate(ScalarOp op) {
  return op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::maximum ||
         op == ScalarOp::minimum;
}

}  // namespace

std::optional<KernelIr> BodyLowering::run(std::string* why_not) {
  for (int attempt = 0; attempt < 64; ++attempt) {
    try {
      kernel_ = KernelIr{};
      kernel_.buffers = buffers_;
      built_.clear();
      choose_domain();
      for (const SplitRequest& split : splits_) domain_.split(split.dim, split.factor);
      lower_outputs();
      return shape_loops(domain_, std::move(kernel_));
    } catch (const Failure& failure) {
      if (!failure.split) {
        if (why_not != nullptr) *why_not = failure.reason;
        return std::nullopt;
      }
      splits_.push_back(*failure.split);
    }
  }
  if (why_not != nullptr) *why_not = "its reshapes do not line up";
  return std::nullopt;
}

// The operand of the first reduction; without one, the first result.
void BodyLowering::choose_domain() {
  const Node* first = nullptr;
  std::set<Value> seen;
  std::vector<Value> waiting;
  for (const BodyOutput& output : outputs_) waiting.push_back(output.value);
  while (!waiting.empty()) {
    const Value value = waiting.back();
    waiting.pop_back();
    if (leaves_.count(value) > 0 || !seen.insert(value).second) continue;
    const Node* node = graph_.producer_node(value);
    if (node == nullptr) continue;
    if (walks_rows(*node) && (first == nullptr || value < first->outputs[0])) first = node;
    waiting.insert(waiting.end(), node->inputs.begin(), node->inputs.end());
  }
  if (first == nullptr) {
    domain_ = Domain(graph_.type(outputs_[0].value).shape, {});
    return;
  }
  const std::vector<int64_t> axes = reduced_axes(*first);
  const bool backwards = first->op == op::cumsum && first->attributes.get_or("reverse", false);
  domain_ =
      Domain(graph_.type(first->inputs[0]).shape, axes, backwards ? static_cast<int>(axes[0]) : -1);
}

void BodyLowering::lower_outputs() {
  for (const BodyOutput& output : outputs_) {
    const Shape& shape = graph_.type(output.value).shape;
    const bool whole = shape.elements() == domain_.root().elements();
    const bool kept = !whole || (domain_.root_shape(true) == shape && domain_.reduces());
    const Shape source = domain_.root_shape(kept);
    if (shape.elements() != source.elements())
      fail(fmt::format("result {} is neither {} nor {}", shape.text(), domain_.root().text(),
                       domain_.root_shape(true).text()));
    const IndexMap map = reshaped(domain_.root_map(kept), source, shape);
    const int value = build(output.value, map);

    Store store;
    store.value = value;
    store.access.buffer = output.buffer;
    store.access.address = domain_.zero();
    const std::vector<int64_t> strides = output.target.shape.strides();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<size_t>(axis);
      Form index = map.axes[a].form;
      if (!output.offsets.empty()) index = shifted(index, output.offsets[a]);
      if (axis == output.symbol_axis)
        index = sum(index,
                    domain_.symbol(symbol(output.start, output.target.shape[axis] - shape[axis])));
      store.access.address = sum(store.access.address, scaled(index, strides[a]));
    }
    kernel_.stores.push_back(std::move(store));
  }
}

IndexMap BodyLowering::reshaped(const IndexMap& map, const Shape& from, const Shape& to) const {
  ReshapeResult result = reshape_map(domain_, map, from, to);
  if (!result.map)
    throw Failure{fmt::format("the reshape {} -> {} is not affine here", from.text(), to.text()),
                  result.split};
  return std::move(*result.map);
}

int BodyLowering::emit(Instruction instruction) {
  const auto found =
      std::find(kernel_.instructions.begin(), kernel_.instructions.end(), instruction);
  if (found != kernel_.instructions.end())
    return static_cast<int>(found - kernel_.instructions.begin());
  kernel_.instructions.push_back(std::move(instruction));
  return static_cast<int>(kernel_.instructions.size()) - 1;
}

int BodyLowering::constant(DType dtype, double value) {
  Instruction instruction;
  instruction.kind = Kind::constant;
  instruction.dtype = dtype;
  instruction.value = value;
  return emit(std::move(instruction));
}

int BodyLowering::scalar(ScalarOp op, DType dtype, std::vector<int> operands) {
  Instruction instruction;
  instruction.kind = Kind::scalar;
  instruction.dtype = dtype;
  instruction.op = op;
  instruction.operands = std::move(operands);
  return emit(std::move(instruction));
}

int BodyLowering::reduce(ScalarOp op, DType dtype, int operand) {
  FB_CHECK(can_accumulate(op), "a reduction by {}", scalar_op_name(op));
  Instruction instruction;
  instruction.kind = Kind::reduce;
  instruction.dtype = dtype;
  instruction.op = op;
  instruction.operands = {operand};
  return emit(std::move(instruction));
}

int BodyLowering::guarded(const std::vector<Predicate>& predicates, int value, int otherwise) {
  if (predicates.empty()) return value;
  Instruction instruction;
  instruction.kind = Kind::inside;
  instruction.dtype = DType::boolean;
  instruction.access.predicates = predicates;
  const DType dtype = kernel_.instructions[static_cast<size_t>(value)].dtype;
  return scalar(ScalarOp::select, dtype, {emit(std::move(instruction)), value, otherwise});
}

int BodyLowering::symbol(Value start, int64_t limit) {
  const auto leaf = leaves_.find(start);
  if (leaf == leaves_.end()) fail("a start that is computed inside");
  for (size_t i = 0; i < kernel_.symbols.size(); ++i)
    if (kernel_.symbols[i].buffer == leaf->second && kernel_.symbols[i].limit == limit)
      return static_cast<int>(i);
  if (kernel_.symbols.size() == kMaxSymbols) fail("too many starts read at run time");
  kernel_.symbols.push_back({leaf->second, limit});
  return static_cast<int>(kernel_.symbols.size()) - 1;
}

int BodyLowering::build(Value value, const IndexMap& map) {
  const std::pair<Value, IndexMap> key{value, map};
  for (const auto& [known, id] : built_)
    if (known == key) return id;
  const auto leaf = leaves_.find(value);
  const Node* node = graph_.producer_node(value);
  if (leaf == leaves_.end() && node == nullptr) fail("an operand that is no buffer");
  const int id =
      leaf != leaves_.end() ? build_load(value, leaf->second, map) : build_node(*node, map);
  built_.emplace_back(key, id);
  return id;
}

int BodyLowering::build_load(Value value, int buffer, const IndexMap& map) {
  const TensorType& type = graph_.type(value);
  const std::vector<int64_t> strides = type.shape.strides();
  Instruction instruction;
  instruction.kind = Kind::load;
  instruction.dtype = type.dtype;
  Access& access = instruction.access;
  access.buffer = buffer;
  access.predicates = map.predicates;
  access.address = domain_.zero();
  for (const AxisIndex& axis : map.axes) access.divisor *= axis.divisor;
  for (size_t i = 0; i < map.axes.size(); ++i) {
    const int64_t factor = strides[i] * (access.divisor / map.axes[i].divisor);
    access.address = sum(access.address, scaled(map.axes[i].form, factor));
  }
  return emit(std::move(instruction));
}

int BodyLowering::build_node(const Node& node, const IndexMap& map) {
  if (node.op->is(Tag::elementwise)) {
    std::vector<int> operands;
    for (Value input : node.inputs) operands.push_back(build(input, map));
    return scalar(node.op->scalar, graph_.type(node.outputs[0]).dtype, std::move(operands));
  }
  if (node.op->is(Tag::source)) return build_source(node, map);
  if (node.op == op::argmax) return build_argmax(node, map);
  if (node.op == op::cumsum) return build_scan(node, map);
  if (node.op->is(Tag::reduction)) return build_reduction(node, map);
  if (node.op == op::dynamic_slice) return build_dynamic_slice(node, map);
  if (node.op == op::dynamic_update_slice) return build_dynamic_update(node, map);
  return build_movement(node, map);
}

// The operand's map for a reduction of the domain: the kept axes as asked for, which must be the
// domain's own, and the reduced ones.
IndexMap BodyLowering::reduction_operand_map(const Node& node, const IndexMap& map) {
  const Shape& shape = graph_.type(node.inputs[0]).shape;
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  for (int64_t axis : reduced_axes(node)) reduced[static_cast<size_t>(axis)] = true;
  if (shape != domain_.root()) fail("reductions of different shapes");
  if (!map.predicates.empty()) fail("a reduction within a pad");
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (reduced[static_cast<size_t>(axis)] != domain_.axis_reduced(axis))
      fail("reductions along different axes");
  if (map != domain_.root_map(true)) fail("a reduction that is moved along its rows");
  return domain_.root_map();
}

int BodyLowering::build_reduction(const Node& node, const IndexMap& map) {
  const DType dtype = graph_.type(node.outputs[0]).dtype;
  const int operand = build(node.inputs[0], reduction_operand_map(node, map));
  return domain_.reduces() ? reduce(node.op->scalar, dtype, operand) : operand;
}

// The largest element first, then the lowest index that holds it. NaN counts as the largest.
int BodyLowering::build_argmax(const Node& node, const IndexMap& map) {
  const IndexMap operand_map = reduction_operand_map(node, map);
  const auto axis = static_cast<int>(node.attributes.get<int64_t>("axis"));
  const DType dtype = graph_.type(node.inputs[0]).dtype;
  const int x = build(node.inputs[0], operand_map);
  if (!domain_.reduces()) return constant(DType::i32, 0);
  const int largest = reduce(ScalarOp::maximum, dtype, x);
  int holds = scalar(ScalarOp::equal, DType::boolean, {x, largest});
  if (is_floating(dtype))
    holds = scalar(ScalarOp::logical_or, DType::boolean,
                   {holds, scalar(ScalarOp::not_equal, DType::boolean, {x, x})});
  Instruction index;
  index.kind = Kind::index;
  index.dtype = DType::i32;
  index.form = domain_.axis(axis);
  const int position = emit(std::move(index));
  const int candidate =
      scalar(ScalarOp::select, DType::i32, {holds, position, constant(DType::i32, 2147483647)});
  return reduce(ScalarOp::minimum, DType::i32, candidate);
}

int BodyLowering::build_scan(const Node& node, const IndexMap& map) {
  const bool backwards = node.attributes.get_or("reverse", false);
  const auto axis = static_cast<int>(node.attributes.get<int64_t>("axis"));
  const DType dtype = graph_.type(node.outputs[0]).dtype;
  if (graph_.type(node.inputs[0]).shape != domain_.root()) fail("a scan of another shape");
  for (int a = 0; a < domain_.root().rank(); ++a)
    if (domain_.axis_reduced(a) != (a == axis)) fail("a scan along another axis");
  if (map != domain_.root_map()) fail("a scan that is moved");
  const Form along = domain_.axis(axis);
  for (size_t d = 0; d < domain_.dims().size(); ++d)
    if (along.coefficients[d] != 0 && (along.coefficients[d] < 0) != backwards)
      fail("scans in opposite directions");
  const int x = build(node.inputs[0], map);
  const bool exclusive = node.attributes.get_or("exclusive", false);
  if (!domain_.reduces()) return exclusive ? constant(dtype, 0) : x;
  Instruction instruction;
  instruction.kind = Kind::scan;
  instruction.dtype = dtype;
  instruction.exclusive = exclusive;
  instruction.operands = {x};
  return emit(std::move(instruction));
}

}  // namespace fullbore::jit
