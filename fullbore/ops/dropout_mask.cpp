#include <algorithm>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/random.h"

/// Which elements dropout keeps, as an op of its own: a call of philox gives the numbers of eight neighbours, 16 bits
/// each, so that a kernel that makes rows of them has an eighth of the work that elements have which draw alone.
namespace fullbore {
namespace {

// Inputs seed, step, (iteration); attributes site, probability, shape.
std::vector<TensorType> infer(const OpCall& call) {
  require_probability(call);
  return {{DType::boolean, require_draw(call)}};
}

// Element e has bits 16 (e mod 8) and on of the draw e div 8.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Shape shape(call.attributes.get<std::vector<int64_t>>("shape"));
  const int64_t count = shape.elements(), draws = (count + kDrawElements - 1) / kDrawElements;
  const Tensor kept = kept_by_draws(call.inputs, call.attributes.get<int64_t>("site"), {draws},
                                    call.attributes.get<double>("probability"));
  return {reshape(slice(kept, 0, 0, count), shape)};
}

std::vector<Sample> samples() {
  const auto sample = [](const char* why, std::vector<int64_t> shape, double probability,
                         bool with_iteration) {
    const auto scalar = [](double value) { return SampleInput::given(kIndex, {value}); };
    Sample result{
        .why = why,
        .inputs = {scalar(7), scalar(11)},
        .attributes = {
            {"site", int64_t{3}}, {"probability", probability}, {"shape", std::move(shape)}}};
    if (with_iteration) result.inputs.push_back(scalar(2));
    return result;
  };
  return {sample("a tenth, one element above whole draws", {5, 33}, 0.1, false),
          sample("most, in a loop", {3, 2, 17}, 0.9, true),
          sample("more than one part of the work", {3, 5000}, 0.5, false),
          sample("nothing is dropped", {9}, 0, false),
          sample("no elements", {0}, 0.5, false),
          sample("a scalar", {}, 0.5, true)};
}

std::vector<ErrorSample> errors() {
  const auto attributes = [](double probability, std::vector<int64_t> shape) {
    return Attributes{
        {"site", int64_t{0}}, {"probability", probability}, {"shape", std::move(shape)}};
  };
  return {{"everything dropped",
           {kIndex, kIndex},
           attributes(1, {4}),
           "probability 1 is not in [0, 1)"},
          {"a floating step",
           {kIndex, {DType::f32, {}}},
           attributes(0.5, {4}),
           "needs an i64 scalar as step, got f32[]"},
          {"more elements than counters",
           {kIndex, kIndex},
           attributes(0.5, {1 << 17, 1 << 16}),
           "[131072,65536] has more than 2^32 elements"},
          {"no step", {kIndex}, attributes(0.5, {4}), "needs 2 to 3 operands, got 1"}};
}

const OpRegistrar registrar(OpDef{
    .name = "dropout_mask",
    .summary = "true with probability 1 - p",
    .tags = Tag::composite | Tag::zero_gradient,
    .infer = infer,
    .decompose = decompose,
    .cost = copy_cost,
    .samples = samples,
    .error_samples = errors,
    .dtypes = {},
});

}  // namespace

void require_probability(const OpCall& call) {
  const auto probability = require_attribute<double>(call, "probability");
  if (!(probability >= 0 && probability < 1))
    call.fail(fmt::format("probability {} is not in [0, 1)", probability));
}

Tensor kept_by_draws(std::span<const Tensor> source, int64_t site, const Shape& draws,
                     double probability) {
  const int last = draws.rank() - 1;
  std::vector<Tensor> halves;
  for (const DrawHalf half : {DrawHalf::lower, DrawHalf::upper}) {
    const Tensor bits = draw_bits(source, site, draws, half);
    const Tensor above = 48.0 - 16.0 * iota(bits.builder(), {DType::i64, {4}}, 0);
    halves.push_back(shift_right(shift_left(expand_dims(bits, last + 1), above), 48.0));
  }
  const Tensor numbers = concat(halves, last + 1);
  return reshape(greater_equal(numbers, static_cast<double>(dropout_threshold(probability))),
                 draws.with(last, kDrawElements * draws[last]));
}

int64_t dropout_threshold(double probability) {
  return std::clamp<int64_t>(std::llround(std::ldexp(probability, 16)), 0, 65535);
}

Tensor dropout_mask(std::span<const Tensor> source, int64_t site, double probability,
                    const Shape& shape, SourceLoc loc) {
  return apply_all("dropout_mask", std::vector<Tensor>(source.begin(), source.end()),
                   {{"site", site}, {"probability", probability}, {"shape", shape.dims()}}, loc)[0];
}

}  // namespace fullbore
