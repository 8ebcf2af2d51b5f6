#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/random.h"

namespace fullbore {
namespace {

// Inputs x, seed, step, (iteration); attributes site, probability.
std::vector<TensorType> infer_dropout(const OpCall& call) {
  require_inputs(call, 3, 4);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_source(call, 1);
  require_probability(call);
  require_drawable(call, call.inputs[0].shape);
  return {call.inputs[0]};
}

// What is decided in integers is the same on every device and for every dtype of x.
std::vector<Tensor> decompose_dropout(const DecomposeCall& call) {
  const Tensor& x = call.inputs[0];
  const auto probability = call.attributes.get<double>("probability");
  const Tensor keep = dropout_mask(call.inputs.subspan(1), call.attributes.get<int64_t>("site"),
                                   probability, x.shape(), call.loc);
  const double kept = 1 - std::ldexp(static_cast<double>(dropout_threshold(probability)), -16);
  const Tensor scaled = widened(x) * (1 / kept);  // in 16 bits the factor has a bias
  return {select(keep, as_dtype(scaled, x.dtype()), 0.0)};
}

std::vector<Sample> dropout_samples() {
  const auto sample = [](std::string why, Shape shape, double probability, bool with_iteration) {
    const auto scalar = [](double value) { return SampleInput::given(kIndex, {value}); };
    Sample result{
        .why = std::move(why),
        .inputs = {SampleInput::normal({DType::f32, std::move(shape)}), scalar(7), scalar(11)},
        .attributes = {{"site", int64_t{3}}, {"probability", probability}}};
    if (with_iteration) result.inputs.push_back(scalar(2));
    return result;
  };
  return {sample("a tenth", {5, 33}, 0.1, false), sample("most", {3, 2, 17}, 0.9, true),
          sample("nothing is dropped", {9}, 0, false), sample("no elements", {0}, 0.5, false),
          sample("a scalar", {}, 0.5, true)};
}

std::vector<ErrorSample> dropout_errors() {
  const TensorType x{DType::f32, {4}};
  const auto attributes = [](double probability) {
    return Attributes{{"site", int64_t{0}}, {"probability", probability}};
  };
  return {
      {"everything dropped", {x, kIndex, kIndex}, attributes(1), "probability 1 is not in [0, 1)"},
      {"a negative probability", {x, kIndex, kIndex}, attributes(-0.5), "is not in [0, 1)"},
      {"integers",
       {{DType::i32, {4}}, kIndex, kIndex},
       attributes(0.5),
       "needs floating x, got i32[4]"},
      {"a step that is no scalar", {x, kIndex, x}, attributes(0.5), "needs an i64 scalar as step"},
      {"no source", {x}, attributes(0.5), "needs 3 to 4 operands, got 1"}};
}

const OpRegistrar dropout_op(OpDef{
    .name = "dropout",
    .summary = "x / (1 - p) with probability 1 - p, else 0",
    .tags = Tag::composite,
    .infer = infer_dropout,
    .decompose = decompose_dropout,
    .samples = dropout_samples,
    .error_samples = dropout_errors,
});

}  // namespace

Tensor dropout(Tensor x, double probability, const RandomSource& source, SourceLoc loc) {
  require_tensor("dropout", "x", x, loc);
  std::vector<Tensor> operands = source_operands("dropout", source, loc);
  operands.insert(operands.begin(), x);
  return apply_all("dropout", operands, {{"site", source.site}, {"probability", probability}},
                   loc)[0];
}

}  // namespace fullbore
