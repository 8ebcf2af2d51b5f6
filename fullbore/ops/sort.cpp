#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::numeric);
  require_rank_at_least(call, 0, "x", 1);
  require_attribute<bool>(call, "descending");
  const TensorType& x = call.inputs[0];
  if (x.shape[x.shape.rank() - 1] > std::numeric_limits<int32_t>::max())
    call.fail(fmt::format("the last axis of {} is too long for i32 indices", operand_text("x", x)));
  return {x, {DType::i32, x.shape}};
}

// Does a belong strictly before b? NaN last in either direction, equal to other NaN.
bool goes_before(const Literal& x, int64_t a, int64_t b, bool descending) {
  const auto i = static_cast<size_t>(a);
  const auto j = static_cast<size_t>(b);
  if (!x.floating())
    return descending ? x.integers()[i] > x.integers()[j] : x.integers()[i] < x.integers()[j];
  const double left = x.reals()[i];
  const double right = x.reals()[j];
  if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);
  return descending ? left > right : left < right;
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const bool descending = call.attributes.get<bool>("descending");
  const AxisView view(x.shape(), x.shape().rank() - 1);
  std::vector<int64_t> order(static_cast<size_t>(view.extent));
  for (int64_t row = 0; row < view.outer; ++row) {
    const int64_t first = row * view.extent;
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return goes_before(x, a, b, descending); });
    for (int64_t i = 0; i < view.extent; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      copy_element(call.outputs[0], first + i, x, from);
      call.outputs[1].integers()[static_cast<size_t>(first + i)] = from - first;
    }
  }
}

// Sorting is a permutation: each cotangent goes back to where its value came from.
std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.cotangents[0].valid()) return {{}};
  const Tensor x = call.inputs[0];
  return {scatter_along_axis(call.cotangents[0], call.outputs[1], -1, x.dim(-1))};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  const TensorType& x = call.inputs[0];
  const auto extent = static_cast<double>(x.shape[x.shape.rank() - 1]);
  // A comparison counts as one operation, n log2 n of them.
  if (is_floating(x.dtype) && extent > 1)
    cost.flops = static_cast<double>(x.elements()) * std::ceil(std::log2(extent));
  return cost;
}

std::vector<Sample> samples() {
  std::vector<Sample> samples;
  for (const bool descending : {false, true}) {
    const Attributes attributes{{"descending", descending}};
    const auto random = [&](const char* why, Shape shape) {
      samples.push_back({.why = why,
                         .inputs = {SampleInput::normal({DType::f32, std::move(shape)})},
                         .attributes = attributes});
    };
    random("one element", {1});
    random("two", {5, 2});
    random("odd rows", {3, 2, 7});
    random("one below 32", {31});
    random("one above 128", {2, 129});
    random("one above 1024", {1025});
    random("nothing", {3, 0});
    random("no rows", {0, 3});
    samples.push_back(
        {.why = "ties keep their order; zeros of both signs are equal",
         .inputs = {SampleInput::given({DType::f32, {2, 8}}, {2, 1, 2, 1, 1, 2, 3, 1, 0.0, -0.0,
                                                              0.0, -1, -0.0, 1, -0.0, 0.0})},
         .attributes = attributes,
         .gradcheck = false});
    samples.push_back({.why = "NaN last, infinities at the ends",
                       .inputs = {SampleInput::given({DType::f32, {7}},
                                                     {1, NAN, HUGE_VAL, -2, NAN, -HUGE_VAL, 0})},
                       .attributes = attributes,
                       .gradcheck = false});
    samples.push_back({.why = "keys of segments",
                       .inputs = {SampleInput::integers({DType::i32, {100}}, 0, 9)},
                       .attributes = attributes});
    samples.push_back({.why = "integers beyond 2^53",
                       .inputs = {SampleInput::integers({DType::i64, {3, 9}}, -9e18, 9e18)},
                       .attributes = attributes});
  }
  return samples;
}

std::vector<ErrorSample> errors() {
  const Attributes good{{"descending", false}};
  return {{"a scalar", {{DType::f32, {}}}, good, "needs x of rank 1 or more, got f32[]"},
          {"truth values", {{DType::boolean, {4}}}, good, "needs numeric x, got bool[4]"},
          {"no attribute", {{DType::f32, {4}}}, {}, "needs attribute 'descending'"}};
}

const OpRegistrar sort_op(OpDef{
    .name = "sort",
    .summary = "stable sort along the last axis: values and where they were",
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

std::tuple<Tensor, Tensor> sort(Tensor x, bool descending, SourceLoc loc) {
  require_tensor("sort", "x", x, loc);
  const std::vector<Tensor> results =
      apply_all("sort", std::span(&x, 1), {{"descending", descending}}, loc);
  return {results[0], results[1]};
}

}  // namespace fullbore
