#include <algorithm>

#include "fullbore/ops/recurrence.h"

namespace fullbore {
namespace {

struct Extents {
  int64_t batch = 2, tokens = 5, heads = 2, groups = 2, keys = 3, values = 2;
  int64_t chunk = 64;
  bool scalar_decay = false, inclusive = false, resets = false;
  double strongest = 2;  ///< log-decays lie between minus this and a little below 0

  int64_t decays() const { return scalar_decay ? 1 : keys; }
  int64_t chunks() const {
    const int64_t size = std::max<int64_t>(1, std::min(chunk, tokens));
    return (tokens + size - 1) / size;
  }
};

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

struct Operands {
  SampleInput r, v, g, u, state, states, resets;

  explicit Operands(const Extents& e)
      : r(SampleInput::normal(f32({e.batch, e.tokens, e.groups, e.keys}))),
        v(SampleInput::normal(f32({e.batch, e.tokens, e.heads, e.values}))),
        g(SampleInput::uniform(f32({e.batch, e.tokens, e.heads, e.decays()}), -e.strongest, -0.01)),
        u(SampleInput::normal(f32({e.heads, e.keys}))),
        state(SampleInput::normal(f32({e.batch, e.heads, e.keys, e.values}))),
        states(SampleInput::normal(f32({e.chunks(), e.batch, e.heads, e.keys, e.values}))),
        // True with a probability of one in six.
        resets(SampleInput::integers({DType::boolean, {e.batch, e.tokens}}, 0, 1.2)) {
    // Differences do not apply where the decay is limited.
    if (e.strongest > 20) g.differentiable = false;
  }
};

struct Case {
  std::string why;
  Extents extents;
};

std::vector<Case> cases() {
  return {
      {"a decay for each key, and a bonus", {}},
      {"one decay for a head, the token's own value read",
       {.groups = 1, .scalar_decay = true, .inclusive = true}},
      {"one decay for a head, and a bonus", {.scalar_decay = true}},
      {"a decay for each key, the token's own value read", {.heads = 4, .inclusive = true}},
      {"one token, as in decoding", {.tokens = 1}},
      {"one element of everything", {1, 1, 1, 1, 1, 1, 1}},
      {"several chunks, the last one shorter", {.tokens = 8, .chunk = 3}},
      {"several sub-chunks", {.batch = 1, .tokens = 37, .heads = 1, .groups = 1, .chunk = 64}},
      {"chunks of several sub-chunks, resets within",
       {.batch = 1, .tokens = 70, .heads = 2, .groups = 1, .chunk = 33, .resets = true}},
      {"resets, one decay for a head",
       {.tokens = 11,
        .groups = 1,
        .chunk = 4,
        .scalar_decay = true,
        .inclusive = true,
        .resets = true}},
      {"resets, one chunk", {.tokens = 6, .inclusive = true, .resets = true}},
      {"resets, chunks of one token", {.tokens = 4, .chunk = 1, .resets = true}},
      {"decays beyond the limit", {.tokens = 20, .chunk = 18, .strongest = 40}},
      {"one beside the widths of vectors",
       {.batch = 1, .tokens = 33, .heads = 2, .groups = 1, .keys = 17, .values = 33, .chunk = 17}},
      {"one decay, one beside the widths of vectors",
       {.batch = 1,
        .tokens = 65,
        .heads = 1,
        .groups = 1,
        .keys = 9,
        .values = 18,
        .chunk = 33,
        .scalar_decay = true,
        .inclusive = true}},
      {"no tokens", {.tokens = 0}},
      {"no batch", {.batch = 0}},
  };
}

Attributes attributes_of(const Extents& e) {
  return recurrence_attributes(e.chunk, e.inclusive, e.resets);
}

template <class Choose>
std::vector<Sample> samples(const Choose& choose) {
  std::vector<Sample> made;
  for (const Case& each : cases()) {
    const Operands operands(each.extents);
    Sample sample{.why = each.why,
                  .inputs = choose(operands, each.extents),
                  .attributes = attributes_of(each.extents)};
    if (each.extents.resets) sample.inputs.push_back(operands.resets);
    made.push_back(std::move(sample));
  }
  return made;
}

}  // namespace

std::vector<Sample> linear_recurrence_samples() {
  return samples([](const Operands& x, const Extents& e) {
    std::vector<SampleInput> inputs = {x.r, x.r, x.v, x.g};
    if (!e.inclusive) inputs.push_back(x.u);
    inputs.push_back(x.state);
    return inputs;
  });
}

std::vector<Sample> recurrence_states_samples() {
  std::vector<Sample> made;
  for (const bool reverse : {false, true})
    for (Sample& sample : samples([](const Operands&x, const Extents&) {
           return std::vector{x.r, x.v, x.g, x.state};
         })) {
      sample.attributes.set("reverse", reverse);
      if (reverse) sample.why += ", in reverse";
      made.push_back(std::move(sample));
    }
  return made;
}

std::vector<Sample> recurrence_outputs_samples() {
  return samples([](const Operands& x, const Extents& e) {
    std::vector<SampleInput> inputs = {x.r, x.r, x.v, x.g};
    if (!e.inclusive) inputs.push_back(x.u);
    inputs.push_back(x.states);
    return inputs;
  });
}

std::vector<Sample> recurrence_gradient_samples() {
  return samples([](const Operands& x, const Extents& e) {
    std::vector<SampleInput> inputs = {x.r, x.r, x.v, x.v, x.g};
    if (!e.inclusive) inputs.push_back(x.u);
    inputs.insert(inputs.end(), {x.states, x.states});
    return inputs;
  });
}

}  // namespace fullbore
