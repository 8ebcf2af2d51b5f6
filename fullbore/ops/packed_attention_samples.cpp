#include <cmath>

#include "fullbore/ops/packed_attention.h"

namespace fullbore {
namespace {

struct Extents {
  int64_t batch = 2, positions = 5, heads = 2, groups = 2, width = 4;
};

Sample sample(std::string why, Extents e, bool causal) {
  return {.why = std::move(why),
          .inputs = {SampleInput::normal(
              {DType::f32, {e.batch, e.positions, e.heads + 2 * e.groups, e.width}})},
          .attributes = {{"causal", causal},
                         {"masked", false},
                         {"scale", 1 / std::sqrt(static_cast<double>(e.width))},
                         {"dropout", 0.0},
                         {"site", int64_t{0}},
                         {"heads", e.heads}}};
}

Sample with_mask(Sample sample, SampleInput mask) {
  sample.inputs.push_back(std::move(mask));
  sample.attributes.set("masked", true);
  return sample;
}

Sample with_dropout(Sample sample, double probability) {
  for (const double value : {77.0, 1000.0})
    sample.inputs.push_back(SampleInput::given(kIndex, {value}).constant());
  sample.attributes.set("dropout", probability);
  sample.attributes.set("site", int64_t{5});
  return sample;
}

// With statistics that are those of no softmax, so that every operand counts for itself, but large
// enough to keep the weights moderate.
Sample gradient_of(const Sample& sample) {
  Sample result = sample;
  const Shape& qkv = sample.inputs[0].type.shape;
  const auto heads = sample.attributes.get<int64_t>("heads");
  const auto normal = [](Shape shape) {
    return SampleInput::normal({DType::f32, std::move(shape)});
  };
  result.inputs.insert(result.inputs.begin() + kPackedOperands,
                       {normal({qkv[0], qkv[1], heads, qkv[3]}),
                        SampleInput::uniform({DType::f32, {qkv[0], heads, qkv[1]}}, 1, 3),
                        normal({qkv[0], qkv[1], heads})});
  return result;
}

}  // namespace

std::vector<Sample> packed_attention_samples() {
  return {
      sample("every position sees every other", {}, false),
      sample("causal", {}, true),
      sample("queries share keys", {.heads = 4, .groups = 2}, true),
      sample("all heads share keys", {.positions = 3, .heads = 3, .groups = 1}, false),
      sample("one element of everything", {1, 1, 1, 1, 1}, true),
      sample("two blocks and a bit", {1, 69, 2, 1, 5}, true),
      sample("many heads of a few positions", {2, 7, 6, 2, 6}, true),
      sample("no positions", {.positions = 0}, true),
      with_mask(sample("keys by batch, as padding does", {}, false),
                SampleInput::integers({DType::boolean, {2, 1, 1, 5}}, 0, 2)),
      with_mask(sample("a bias of positions, which learns", {}, true),
                SampleInput::normal({DType::f32, {1, 2, 5, 5}})),
      with_dropout(sample("weights are dropped", {.positions = 9}, true), 0.25),
  };
}

std::vector<Sample> packed_attention_gradient_samples() {
  std::vector<Sample> samples;
  for (const Sample& sample : packed_attention_samples()) samples.push_back(gradient_of(sample));
  return samples;
}

std::vector<ErrorSample> packed_attention_error_samples() {
  const TensorType qkv{DType::f32, {2, 5, 8, 4}};
  const auto attributes = [](int64_t heads, bool masked = false) {
    return Attributes{{"causal", true}, {"masked", masked},   {"scale", 0.5},
                      {"dropout", 0.0}, {"site", int64_t{0}}, {"heads", heads}};
  };
  return {
      {"an odd number of others", {qkv}, attributes(3), "qkv f32[2,5,8,4] has not 3 heads"},
      {"nothing but queries", {qkv}, attributes(8), "has not 8 heads"},
      {"heads that cannot share",
       {{DType::f32, {2, 5, 9, 4}}},
       attributes(5),
       "5 heads are no multiple of 2"},
      {"heads not apart", {{DType::f32, {2, 5, 32}}}, attributes(4), "needs qkv of rank 4"},
      {"a mask of other keys",
       {qkv, {DType::boolean, {2, 1, 1, 6}}},
       attributes(4, true),
       "needs a mask [2 or 1,4 or 1,5 or 1,5]"},
  };
}

}  // namespace fullbore
