#include <cmath>
#include <limits>

#include "fullbore/ops/attention.h"

namespace fullbore {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Extents {
  int64_t batch = 2, heads = 2, groups = 2, queries = 5, keys = 5, width = 4;
};

Sample sample(std::string why, Extents e, bool causal) {
  const TensorType q{DType::f32, {e.batch, e.heads, e.queries, e.width}};
  const TensorType k{DType::f32, {e.batch, e.groups, e.keys, e.width}};
  return {.why = std::move(why),
          .inputs = {SampleInput::normal(q), SampleInput::normal(k), SampleInput::normal(k)},
          .attributes = {{"causal", causal},
                         {"masked", false},
                         {"scale", 1 / std::sqrt(static_cast<double>(e.width))},
                         {"dropout", 0.0},
                         {"site", int64_t{0}}}};
}

Sample with_mask(Sample sample, SampleInput mask) {
  sample.inputs.push_back(std::move(mask));
  sample.attributes.set("masked", true);
  return sample;
}

Sample with_dropout(Sample sample, double probability, bool in_loop) {
  const auto scalar = [](double value) { return SampleInput::given(kIndex, {value}).constant(); };
  sample.inputs.push_back(scalar(77));
  sample.inputs.push_back(scalar(1000));
  if (in_loop) sample.inputs.push_back(scalar(3));
  sample.attributes.set("dropout", probability);
  sample.attributes.set("site", int64_t{5});
  return sample;
}

Sample with_scale(Sample sample, double scale) {
  sample.attributes.set("scale", scale);
  return sample;
}

SampleInput truth(Shape shape) {
  return SampleInput::integers({DType::boolean, std::move(shape)}, 0, 2);
}

// The same call's gradient: with statistics that are those of no softmax, so that every operand
// counts for itself, but large enough to keep the weights moderate.
Sample gradient_of(const Sample& sample) {
  Sample result = sample;
  const TensorType& q = sample.inputs[0].type;
  const TensorType rows{DType::f32, q.shape.without(3)};
  const double largest = sample.attributes.get<double>("scale") > 1 ? 20 : 1;
  result.inputs.insert(result.inputs.begin() + kAttentionOperands,
                       {SampleInput::normal(q), SampleInput::uniform(rows, largest, largest + 2),
                        SampleInput::normal(rows)});
  return result;
}

}  // namespace

std::vector<Sample> attention_samples() {
  return {
      sample("every query sees every key", {}, false),
      sample("causal", {}, true),
      sample("causal with a cache: fewer queries than keys", {.queries = 2, .keys = 7}, true),
      sample("causal, more queries than keys: the first see none", {.queries = 6, .keys = 4}, true),
      sample("decoding: one query", {.batch = 3, .queries = 1, .keys = 9}, true),
      sample("cross-attention", {.queries = 3, .keys = 8}, false),
      sample("queries share keys", {.heads = 4, .groups = 2}, true),
      sample("all heads share keys", {.heads = 3, .groups = 1, .queries = 4, .keys = 6}, false),
      sample("one element of everything", {1, 1, 1, 1, 1, 1}, true),
      sample("one above 16 and 32", {1, 2, 1, 17, 33, 17}, true),
      sample("two blocks and a bit, each way", {1, 2, 2, 69, 133, 5}, false),
      sample("causal over several blocks", {1, 3, 1, 81, 81, 6}, true),
      sample("wider than a block of columns", {1, 1, 1, 18, 20, 67}, true),
      sample("no keys: zeros", {.keys = 0}, false),
      sample("no queries", {.queries = 0}, true),
      sample("no batch", {.batch = 0}, true),
      with_scale(sample("sharp", {}, false), 5),
      with_scale(sample("flat: the mean of the values", {}, false), 0),
      with_mask(sample("keys by batch, as padding does", {}, false), truth({2, 1, 1, 5})),
      with_mask(sample("keys by query, and causal", {}, true), truth({2, 2, 5, 5})),
      with_mask(sample("keys by head", {.heads = 4, .groups = 2}, false), truth({1, 4, 1, 5})),
      with_mask(sample("rows without any key", {.batch = 1, .heads = 1, .groups = 1, .queries = 3},
                       false),
                SampleInput::given({DType::boolean, {1, 1, 3, 5}},
                                   {0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0})
                    .constant()),
      with_mask(sample("a bias of positions, which learns", {}, false),
                SampleInput::normal({DType::f32, {1, 2, 5, 5}})),
      with_mask(sample("a bias of -inf", {.batch = 1, .queries = 2, .keys = 3}, false),
                SampleInput::given({DType::f32, {1, 1, 2, 3}},
                                   {0, -kInfinity, 1, -kInfinity, -kInfinity, -kInfinity})
                    .constant()),
      with_dropout(sample("weights are dropped", {.queries = 9, .keys = 9}, true), 0.25, false),
      with_dropout(
          with_mask(sample("masked and dropped, in a loop", {}, false), truth({2, 1, 5, 5})), 0.5,
          true),
      with_dropout(
          with_mask(sample("many queries, a mask for each head", {1, 4, 2, 21, 35, 3}, true),
                    truth({1, 4, 21, 35})),
          0.125, false),
  };
}

std::vector<Sample> attention_gradient_samples() {
  std::vector<Sample> samples;
  for (const Sample& sample : attention_samples()) samples.push_back(gradient_of(sample));
  return samples;
}

}  // namespace fullbore
