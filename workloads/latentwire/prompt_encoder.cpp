#include "workloads/latentwire/prompt_encoder.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "fullbore/nn/modules.h"
#include "workloads/latentwire/xavier.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kBytes = 256, kInner = 4;
constexpr double kLongestWave = 10000;

// Section 3.5 of Vaswani et al. 2017: constants, not parameters.
Tensor sinusoids(GraphBuilder& builder, int64_t places, int64_t width) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(places * width));
  for (int64_t place = 0; place < places; ++place)
    for (int64_t channel = 0; channel < width; ++channel) {
      const double exponent =
          static_cast<double>(channel - channel % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(place) / std::pow(kLongestWave, exponent);
      values.push_back(channel % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return constant(builder, {DType::f32, {places, width}}, std::move(values));
}

// bool [B,1,1,N]: the places of each row that hold something.
Tensor mask_of(Tensor lengths, int64_t places) {
  const int64_t batch = lengths.dim(0);
  const Tensor place = iota(lengths.builder(), {lengths.dtype(), {batch, 1, 1, places}}, 3);
  return less(place, reshape(lengths, {batch, 1, 1, 1}));
}

Tensor mlp(Trace& trace, Tensor x, int64_t hidden) {
  const int64_t width = x.dim(x.rank() - 1);
  const Tensor inner = gelu(nn::linear(trace, "up", x, hidden, xavier(width, hidden)));
  return nn::linear(trace, "down", inner, width, xavier(hidden, width));
}

// [B,T,C] -> [B,H,T,C/H]
Tensor heads_of(Tensor x, int64_t heads) {
  return swap_axes(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

}  // namespace

Tensor encoder_layer(Trace& trace, const std::string& name, Tensor x, Tensor mask,
                     const LayerOptions& options) {
  const Scope scope(trace, name);
  const int64_t width = x.dim(2);
  const auto attend = [&](Tensor y) {
    const Scope attention_scope(trace, "attention");
    const std::vector<Tensor> parts = split(
        nn::linear(trace, "qkv", y, 3 * width, xavier(width, width)), 2, {width, width, width});
    AttentionOptions attention_options{.mask = mask};
    if (trace.training() && options.dropout > 0) {
      attention_options.dropout = options.dropout;
      attention_options.random = trace.random();
    }
    const Tensor seen =
        attention(heads_of(parts[0], options.heads), heads_of(parts[1], options.heads),
                  heads_of(parts[2], options.heads), attention_options);
    const Tensor joined = reshape(swap_axes(seen, 1, 2), y.shape());
    return nn::dropout(trace, nn::linear(trace, "projection", joined, width, xavier(width, width)),
                       options.dropout);
  };
  const auto transform = [&](Tensor y) {
    return nn::dropout(trace, mlp(trace, y, kInner * width), options.dropout);
  };
  const auto norm = [&](const char* which, Tensor y) { return nn::layer_norm(trace, which, y); };
  if (options.pre_norm) {
    x = x + attend(norm("attention_norm", x));
    return x + transform(norm("norm", x));
  }
  x = norm("attention_norm", x + attend(x));
  return norm("norm", x + transform(x));
}

Tensor encode_bytes(Trace& trace, Tensor bytes, Tensor lengths, const EncoderSizes& sizes) {
  const Scope scope(trace, "encoder");
  const int64_t places = bytes.dim(1);
  Tensor x = nn::embedding(trace, "bytes", bytes, kBytes, sizes.width, Initializer::normal(1)) +
             sinusoids(trace.builder(), places, sizes.width);
  const Tensor mask = mask_of(lengths, places);
  for (int64_t layer = 0; layer < sizes.layers; ++layer)
    x = encoder_layer(trace, fmt::format("layers.{}", layer), x, mask,
                      {sizes.heads, sizes.pre_norm, sizes.dropout});
  return nn::layer_norm(trace, "norm", x);
}

namespace {

// O of pool_slots(), behind its gate.
Tensor gated_slots(Trace& trace, Tensor features, Tensor lengths, const EncoderSizes& sizes,
                   bool with_sinusoids) {
  const int64_t batch = features.dim(0), width = features.dim(2);
  const nn::LinearOptions square = xavier(width, width);
  Tensor queries = trace.parameter("queries", {sizes.slots, width},
                                   Initializer::normal(1 / std::sqrt(static_cast<double>(width))));
  if (with_sinusoids) queries = queries + sinusoids(trace.builder(), sizes.slots, width);
  const Tensor asked = cast(queries, features.dtype());
  const auto project = [&](const char* name, Tensor x) {
    return nn::linear(trace, name, x, width, square);
  };
  const Tensor q = broadcast_to(heads_of(expand_dims(project("query", asked), 0), sizes.heads),
                                {batch, sizes.heads, sizes.slots, width / sizes.heads});
  const Tensor k = heads_of(project("key", features), sizes.heads);
  const Tensor v = heads_of(project("value", features), sizes.heads);
  const Tensor seen = attention(q, k, v, {.mask = mask_of(lengths, features.dim(1))});
  const Tensor joined = reshape(swap_axes(seen, 1, 2), {batch, sizes.slots, width});
  const Tensor o = project("projection", joined) + asked;
  const Tensor g = sigmoid(project("gate", nn::layer_norm(trace, "gate_norm", o)));
  return g * o + (1.0 - g) * asked;
}

// [B,N,C] of rows of `lengths` -> [B,1,C]
Tensor sentence_of(Tensor states, Tensor lengths) {
  const int64_t batch = states.dim(0), places = states.dim(1);
  const Tensor place = iota(lengths.builder(), {lengths.dtype(), {batch, places, 1}}, 1);
  const Tensor is_text = cast(less(place, reshape(lengths, {batch, 1, 1})), DType::f32);
  const Tensor sum = reduce_sum(cast(states, DType::f32) * is_text, {1}, true);
  // The mean's direction is the sum's.
  return sum * rsqrt(reduce_sum(sum * sum, {2}, true) + 1e-24);
}

}  // namespace

Tensor pool_slots(Trace& trace, Tensor features, Tensor lengths, const EncoderSizes& sizes) {
  const Scope scope(trace, "pooler");
  const Tensor o = gated_slots(trace, features, lengths, sizes, false);
  return o + mlp(trace, nn::layer_norm(trace, "norm", o), 2 * features.dim(2));
}

Tensor encode_tokens(Trace& trace, Tensor tokens, Tensor lengths, const EncoderSizes& sizes) {
  Tensor states;
  {
    const FrozenScope frozen(trace, {"*"},
                             [dtype = sizes.text->storage](const std::string&) { return dtype; });
    const Scope scope(trace, TextEncoder::kScope);
    states = nn::bert_states(trace, tokens, lengths, sizes.text->config);
  }
  const Scope scope(trace, "pooler");
  const int64_t batch = tokens.dim(0), width = sizes.text->config.width;
  const auto project = [&](Tensor x) {
    return nn::linear(trace, "output", x, sizes.width, xavier(width, sizes.width));
  };
  if (sizes.reads == EncoderSizes::Reads::sentence)
    return broadcast_to(project(sentence_of(states, lengths)), {batch, sizes.slots, sizes.width});
  const Tensor o = gated_slots(trace, states, lengths, sizes, true);
  return project(nn::layer_norm(trace, "norm", o));
}

Tensor encode_prompts(Trace& trace, Tensor units, Tensor lengths, const EncoderSizes& sizes) {
  if (sizes.reads != EncoderSizes::Reads::bytes) return encode_tokens(trace, units, lengths, sizes);
  return pool_slots(trace, encode_bytes(trace, units, lengths, sizes), lengths, sizes);
}

Tensor slots_of_model(Tensor wire, const SlotSplit& split, int64_t model) {
  if (split.own == 0) return wire;
  const int64_t begin = split.shared + model * split.own;
  const Tensor own = slice(wire, 1, begin, begin + split.own);
  if (split.shared == 0) return own;
  const Tensor parts[] = {slice(wire, 1, 0, split.shared), own};
  return concat(parts, 1);
}

Tensor drop_slots(Trace& trace, Tensor wire, const SlotSplit& split, Tensor keep) {
  const int64_t batch = wire.dim(0);
  if (split.shared == 0) return wire;
  const Tensor drawn = random_uniform(trace.random(), {DType::f32, {batch, split.shared}});
  // The least draw of a row stays whatever keep is.
  const Tensor kept =
      logical_or(less(drawn, keep), less_equal(drawn, reduce_min(drawn, {1}, true)));
  const Tensor factor = expand_dims(cast(kept, DType::f32) / keep, 2);
  const Tensor shared = slice(wire, 1, 0, split.shared) * cast(factor, wire.dtype());
  if (split.own == 0) return shared;
  const Tensor parts[] = {shared, slice(wire, 1, split.shared, split.wire_slots())};
  return concat(parts, 1);
}

}  // namespace fullbore::latentwire
