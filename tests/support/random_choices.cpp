#include "tests/support/random_choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/ir/op_def.h"
#include "tests/support/gradcheck.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

constexpr double kLargestGiven = 100;  // samples with larger operands test overflow, not us

bool is_tame(const Literal& literal) {
  return std::all_of(literal.reals().begin(), literal.reals().end(), [](double value) {
    return std::isfinite(value) && std::abs(value) <= kLargestGiven;
  });
}

// Where a sample narrows one floating operand, the others may be what it was narrowed for: the log-sum-exp
// of attention's gradient is that of no other scores, and its weights overflow for larger ones.
bool stands_alone(const Sample& sample, size_t operand) {
  using Fill = SampleInput::Fill;
  if (sample.inputs[operand].fill != Fill::normal) return false;
  return std::none_of(sample.inputs.begin(), sample.inputs.end(), [](const SampleInput& input) {
    return is_floating(input.type.dtype) && input.fill != Fill::normal;
  });
}

std::vector<const OpDef*> elementwise_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef* op : all_ops())
    if (op->is(Tag::elementwise)) ops.push_back(op);
  return ops;
}

Attributes cast_attributes(const Workbench& bench) {
  std::vector<DType> dtypes = {bench.options.dtype, DType::i64, DType::i32, DType::boolean};
  if (bench.options.mixed_dtypes)
    dtypes.insert(dtypes.end(), {DType::f64, DType::f32, DType::bf16});
  return {{"dtype", bench.one_of(dtypes)}};
}

}  // namespace

std::optional<Tensor> Workbench::pick(const std::function<bool(Tensor)>& fits) const {
  std::vector<Tensor> fitting;
  std::copy_if(values.begin(), values.end(), std::back_inserter(fitting), fits);
  if (fitting.empty()) return std::nullopt;
  const int64_t count = static_cast<int64_t>(fitting.size());
  return fitting[static_cast<size_t>(std::max(below(count), below(count)))];
}

Tensor Workbench::pick_floating() {
  const auto found = pick([&](Tensor x) { return x.dtype() == options.dtype; });
  return found ? *found : normal_input(shape(3));
}

Shape Workbench::shape(int most_rank) const {
  static const std::vector<int64_t> extents = {1, 1, 2, 2, 3, 3, 4, 5, 7};
  std::vector<int64_t> dims(static_cast<size_t>(below(most_rank + 1)));
  for (int64_t& extent : dims) extent = chance(0.03) ? 0 : one_of(extents);
  return Shape(std::move(dims));
}

Tensor Workbench::normal_input(const Shape& shape) {
  return new_input(random_literal({options.dtype, shape}, draws.bits(), 0));
}

Tensor adapt(Tensor x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int64_t have = x.type().elements(), want = shape.elements();
  Tensor flat = reshape(x, {have});
  if (have > want) flat = slice(flat, 0, 0, want);
  if (have < want) flat = pad(flat, 0, 0, want - have);
  return reshape(flat, shape);
}

std::vector<Tensor> call_by_sample(Workbench& bench) {
  const OpDef& op = *bench.one_of(all_ops());
  const std::vector<Sample> samples = op.samples();
  if (samples.empty() || (op.is(Tag::region) && !bench.options.loops)) return {};
  const Sample& sample = bench.one_of(samples);
  const MaterialisedSample call = materialise(op, sample, bench.options.dtype, bench.draws.bits());
  for (int32_t i = 0; i < call.graph.value_count(); ++i)
    if (call.graph.type({i}).elements() > bench.options.most_elements) return {};
  std::vector<Tensor> operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const Literal& given = call.inputs[i];
    if (!is_tame(given)) return {};
    const bool other_dtype = given.floating() && given.dtype() != bench.options.dtype;
    if (other_dtype && !bench.options.mixed_dtypes) return {};
    const auto similar =
        bench.pick([&](Tensor x) { return x.dtype() == given.dtype() && x.type().elements() > 0; });
    operands.push_back(similar && stands_alone(sample, i) && bench.chance(0.8)
                           ? adapt(*similar, given.shape())
                           : bench.new_input(given));
  }
  if (operands.empty() && !op.is(Tag::source)) return {};
  const Node& node = call.graph.nodes()[0];
  for (const Attributes::Entry& entry : node.attributes.entries())
    if (const auto* dtype = std::get_if<DType>(&entry.value))
      if (is_floating(*dtype) && *dtype != bench.options.dtype && !bench.options.mixed_dtypes)
        return {};
  return bench.builder.emit(op, operands, node.attributes, {}, node.body);
}

std::vector<Tensor> call_elementwise(Workbench& bench) {
  const OpDef& op = *bench.one_of(elementwise_ops());
  const bool is_select = op.scalar == ScalarOp::select;
  std::optional<Tensor> first = bench.pick([&](Tensor x) { return x.type().elements() > 0; });
  if (!first) return {};
  std::vector<Tensor> operands = {*first};
  for (int i = 1; i < scalar_op_arity(op.scalar); ++i) {
    const DType dtype = operands.back().dtype();
    const auto other = bench.pick([&](Tensor x) {
      return (x.dtype() == dtype || (is_select && i == 1)) &&
             (x.shape() == first->shape() || x.type().elements() > 0);
    });
    if (!other) return {};
    const bool scalar = other->rank() == 0;
    operands.push_back(scalar ? broadcast_to(*other, first->shape())
                              : adapt(*other, first->shape()));
  }
  const Attributes attributes = op.scalar == ScalarOp::cast ? cast_attributes(bench) : Attributes{};
  try {
    return bench.builder.emit(op, operands, attributes, {});
  } catch (const UsageError&) {
    return {};  // of another dtype than the op takes
  }
}

std::vector<Tensor> move_elements(Workbench& bench) {
  const auto found = bench.pick([](Tensor) { return true; });
  if (!found) return {};
  const Tensor x = *found;
  const auto axis = static_cast<int>(x.rank() > 0 ? bench.below(x.rank()) : 0);
  const int64_t extent = x.rank() > 0 ? x.dim(axis) : 1;
  switch (bench.below(x.rank() > 0 ? 9 : 2)) {
    case 0: return {broadcast_to(x, x.shape().inserted(0, bench.below(4)))};
    case 1: return {expand_dims(x, static_cast<int>(bench.below(x.rank() + 1)))};
    case 2: {
      std::vector<int64_t> order(static_cast<size_t>(x.rank()));
      std::iota(order.begin(), order.end(), 0);
      for (size_t i = order.size(); i > 1; --i)
        std::swap(order[i - 1], order[static_cast<size_t>(bench.below(static_cast<int64_t>(i)))]);
      return {transpose(x, order)};
    }
    case 3: {
      const int64_t start = bench.below(extent + 1);
      return {slice(x, axis, start, start + bench.below(extent - start + 1), 1 + bench.below(3))};
    }
    case 4: {
      const int64_t before = bench.below(4) - 1;
      const int64_t after = bench.below(4) - 1;
      return extent + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 0
                 ? std::vector<Tensor>{}
                 : std::vector<Tensor>{pad(x, axis, before, after, bench.below(2))};
    }
    case 5: {
      const std::vector<Tensor> parts(static_cast<size_t>(1 + bench.below(3)), x);
      return {concat(parts, axis)};
    }
    case 6: return {reverse(x, axis)};
    case 7: return {reshape(x, {x.type().elements()})};
    default: return split(x, axis, {extent / 2, extent - extent / 2});
  }
}

std::vector<Tensor> reduce_elements(Workbench& bench) {
  const auto found = bench.pick(
      [](Tensor x) { return x.rank() > 0 && x.type().elements() > 0 && is_floating(x.dtype()); });
  if (!found) return {};
  const Tensor x = *found;
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (bench.chance(0.6)) axes.push_back(axis);
  if (axes.empty()) axes.push_back(x.rank() - 1);
  const bool keep = bench.chance(0.5);
  const Tensor reduced = bench.chance(0.5)   ? reduce_sum(x, axes, keep)
                         : bench.chance(0.5) ? reduce_mean(x, axes, keep)
                                             : reduce_max(x, axes, keep);
  // The shape of every normalisation: rows against something of each row.
  if (keep && bench.chance(0.7)) return {x - reduced, reduced};
  return {reduced};
}

namespace {

// Is it a row of what a loop is given slice by slice?
bool is_slice(Tensor x) {
  const Graph& graph = x.builder().graph();
  return std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](const Graph::Input& input) {
    return input.value == x.value() && input.name.starts_with("slice");
  });
}

}  // namespace

Tensor sum_of_products(Workbench& bench, Tensor sum) {
  const int64_t m = sum.dim(0), n = sum.dim(1);
  const bool wide = m >= kWide;
  std::vector<Tensor> factors;
  const auto factor = [&](int64_t rows, int64_t columns) {
    const Shape shape = {rows, columns};
    for (Tensor known : factors)
      if (known.shape() == shape && bench.chance(0.4)) return known;
    const auto ready = bench.pick(
        [&](Tensor x) { return x.dtype() == bench.options.dtype && x.shape() == shape; });
    const Tensor x = ready && (wide || bench.chance(0.7)) ? bench.builder.import(*ready)
                                                          : adapt(bench.pick_floating(), shape);
    // What a sum itself goes into would grow from iteration to iteration.
    factors.push_back(bench.depth > 0 && !is_slice(x) ? tanh(x) : x);
    return factors.back();
  };
  const auto product = [&] {
    const int64_t k = wide ? 1 : 1 + bench.below(3);
    if (!wide && bench.chance(0.2))
      return matmul(factor(m, k), factor(n, k), {.transpose_b = true});
    if (bench.chance(0.2))
      return transpose(matmul(factor(k, n), factor(k, m), {.transpose_a = true}), {1, 0});
    return matmul(factor(k, m), factor(k, n), {.transpose_a = true});
  };
  for (int64_t i = 0; i < 1 + bench.below(wide ? 2 : 3); ++i)
    sum = bench.chance(0.5) ? sum + product() : product() + sum;
  return sum;
}

std::vector<Tensor> add_depth(Workbench& bench) {
  const Tensor initial = adapt(bench.pick_floating(), {1 + bench.below(6), 1 + bench.below(6)});
  return {sum_of_products(bench, initial)};
}

std::vector<Tensor> multiply_matrices(Workbench& bench) {
  const auto found = bench.pick([&](Tensor x) { return x.rank() >= 2 && is_floating(x.dtype()); });
  if (!found) return {};
  const Tensor a = *found;
  const Shape leading = a.shape().slice(0, a.rank() - 2);
  const bool transpose_a = bench.chance(0.3), transpose_b = bench.chance(0.3);
  const int64_t contracted = a.dim(transpose_a ? -2 : -1);
  const int64_t columns = 1 + bench.below(4);
  Shape shape = leading.inserted(leading.rank(), transpose_b ? columns : contracted);
  shape = shape.inserted(shape.rank(), transpose_b ? contracted : columns);
  const auto similar =
      bench.pick([&](Tensor x) { return x.dtype() == a.dtype() && x.type().elements() > 0; });
  Tensor b = similar && bench.chance(0.5) ? adapt(*similar, shape)
                                          : cast(bench.normal_input(shape), a.dtype());
  if (bench.chance(0.3))
    b = transpose(transpose(b,
                            [&] {
                              std::vector<int64_t> order(static_cast<size_t>(b.rank()));
                              std::iota(order.begin(), order.end(), 0);
                              std::swap(order[order.size() - 1], order[order.size() - 2]);
                              return order;
                            }()),
                  [&] {
                    std::vector<int64_t> order(static_cast<size_t>(b.rank()));
                    std::iota(order.begin(), order.end(), 0);
                    std::swap(order[order.size() - 1], order[order.size() - 2]);
                    return order;
                  }());
  return {matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b})};
}

std::vector<Tensor> add_constant(Workbench& bench) {
  const Shape shape = bench.shape(2);
  const DType dtype = bench.chance(0.7) ? bench.options.dtype : DType::i64;
  if (bench.chance(0.5))
    return {
        full(bench.builder, {dtype, shape}, bench.one_of(std::vector<double>{0, 1, 2, -1, 4, 8}))};
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = std::floor(bench.draws.uniform(-4, 4)) / 2;
  return {constant(bench.builder, {dtype, shape}, std::move(values))};
}

std::vector<Tensor> repeat_node(Workbench& bench) {
  const auto found = bench.pick([&](Tensor x) {
    return &x.builder() == &bench.builder && bench.builder.graph().producer(x.value()) >= 0;
  });
  if (!found) return {};
  const Node node = *bench.builder.graph().producer_node(found->value());
  std::vector<Tensor> operands;
  for (Value input : node.inputs) operands.emplace_back(&bench.builder, input);
  return bench.builder.emit_like(node, operands);
}

std::vector<Tensor> differentiate(Workbench& bench) {
  const auto differentiable = [](Tensor x) {
    return is_floating(x.dtype()) && x.type().elements() > 0;
  };
  const auto target = bench.pick(differentiable);
  if (!target || !bench.options.gradients) return {};
  std::vector<int64_t> axes(static_cast<size_t>(target->rank()));
  std::iota(axes.begin(), axes.end(), 0);
  const Tensor loss = axes.empty() ? *target : reduce_mean(*target, axes);
  std::vector<Tensor> wanted;
  for (int64_t i = 0; i < 1 + bench.below(3); ++i) wanted.push_back(*bench.pick(differentiable));
  return gradient(loss, wanted);
}

}  // namespace fullbore
