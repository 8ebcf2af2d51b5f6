#include <cmath>

#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::numeric);
  require_axis(call, require_attribute<int64_t>(call, "axis"), "x", call.inputs[0]);
  require_attribute<bool>(call, "exclusive");
  require_attribute<bool>(call, "reverse");
  return {call.inputs[0]};
}

struct Running {
  double real = 0;
  double magnitude = 0;
  uint64_t integer = 0;  // unsigned: integers wrap
  int64_t terms = 0;

  void take(const Literal& x, int64_t at) {
    const auto i = static_cast<size_t>(at);
    ++terms;
    if (!x.floating()) {
      integer += static_cast<uint64_t>(x.integers()[i]);
      return;
    }
    real += x.reals()[i];
    magnitude += std::abs(x.reals()[i]);
  }
  void give(Literal& y, std::vector<double>& magnitudes, int64_t at) const {
    const auto i = static_cast<size_t>(at);
    if (!y.floating()) {
      y.integers()[i] = static_cast<int64_t>(integer);
      return;
    }
    y.reals()[i] = real;
    magnitudes[i] = static_cast<double>(terms) * magnitude;
  }
};

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& y = call.outputs[0];
  const bool exclusive = call.attributes.get<bool>("exclusive");
  const bool backwards = call.attributes.get<bool>("reverse");
  std::vector<double> magnitudes(y.reals().size());
  const AxisView view(x.shape(), static_cast<int>(call.attributes.get<int64_t>("axis")));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      Running sum;
      for (int64_t i = 0; i < view.extent; ++i) {
        const int64_t at = view.at(o, backwards ? view.extent - 1 - i : i, n);
        if (!exclusive) sum.take(x, at);
        sum.give(y, magnitudes, at);
        if (exclusive) sum.take(x, at);
      }
    }
  if (x.floating())
    call.magnitudes = {std::move(magnitudes)};
  else
    y.round();
}

// dx[i] = sum of dy[j] over the j that x[i] was added to: the same sum from the other end.
std::vector<Tensor> vjp(const VjpCall& call) {
  return {cumsum(call.cotangents[0], static_cast<int>(call.attributes.get<int64_t>("axis")),
                 call.attributes.get<bool>("exclusive"), !call.attributes.get<bool>("reverse"))};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  if (is_floating(call.inputs[0].dtype))
    cost.flops = static_cast<double>(call.inputs[0].elements());
  return cost;
}

Attributes attributes(int64_t axis, bool exclusive, bool reverse) {
  return {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
}

std::vector<Sample> samples() {
  const auto random = [](const char* why, Shape shape, Attributes with) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(shape)})},
                  .attributes = std::move(with)};
  };
  return {random("one element", {1}, attributes(0, false, false)),
          random("one element, exclusive", {1}, attributes(0, true, false)),
          random("rows", {3, 5}, attributes(1, false, false)),
          random("rows, exclusive", {3, 5}, attributes(1, true, false)),
          random("rows, reverse", {3, 5}, attributes(1, false, true)),
          random("rows, exclusive and reverse", {3, 5}, attributes(1, true, true)),
          random("columns", {9, 17}, attributes(0, false, false)),
          random("columns, exclusive and reverse", {9, 17}, attributes(0, true, true)),
          random("the middle axis", {2, 7, 3}, attributes(1, true, false)),
          random("one above 128", {2, 129}, attributes(1, false, false)),
          random("one above 1024", {1025}, attributes(0, false, true)),
          random("no elements", {3, 0}, attributes(1, false, false)),
          random("no rows", {0, 3}, attributes(1, true, false)),
          {.why = "positions for compaction: counts of 0 and 1",
           .inputs = {SampleInput::integers({DType::i32, {70}}, 0, 2)},
           .attributes = attributes(0, true, false)},
          {.why = "i32 wraps around",
           .inputs =
               {SampleInput::given({DType::i32, {4}}, {2147483647, 2, -5, 2147483647}).constant()},
           .attributes = attributes(0, false, false)}};
}

std::vector<ErrorSample> errors() {
  return {{"an axis beyond the last",
           {{DType::f32, {8, 4, 2}}},
           attributes(3, false, false),
           "axis 3 out of range [-3, 2] for x f32[8,4,2]"},
          {"truth values", {{DType::boolean, {4}}}, attributes(0, false, false), "needs numeric x"},
          {"no attribute", {{DType::f32, {4}}}, {{"axis", int64_t{0}}}, "attribute 'exclusive'"}};
}

const OpRegistrar cumsum_op(OpDef{
    .name = "cumsum",
    .summary = "running sum along an axis",
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor cumsum(Tensor x, int axis, bool exclusive, bool reverse, SourceLoc loc) {
  require_tensor("cumsum", "x", x, loc);
  return apply("cumsum", {x}, attributes(normal_axis(axis, x.rank()), exclusive, reverse), loc);
}

}  // namespace fullbore
