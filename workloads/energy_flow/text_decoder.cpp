#include "workloads/energy_flow/text_decoder.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/nn/modules.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kDeviation = 0.02;

// Three branches a layer are added to the stream: their last layers start smaller, so that its variance does not grow
// with depth (Radford et al. 2019, section 2.3).
Initializer of_branch(const DecoderSizes& sizes) {
  return Initializer::normal(kDeviation / std::sqrt(3.0 * static_cast<double>(sizes.layers)));
}

// x [B,T,C], memory [B,M]
Tensor layer(Trace& trace, Tensor x, Tensor memory, const DecoderSizes& sizes,
             const nn::CacheOptions& cache) {
  const auto drop = [&](Tensor y) { return nn::dropout(trace, y, sizes.dropout); };
  const Tensor mixed =
      nn::self_attention(trace, "attention", nn::layer_norm(trace, "attention_norm", x),
                         {.heads = sizes.heads,
                          .dropout = sizes.dropout,
                          .projection_initializer = of_branch(sizes),
                          .cache = cache});
  x = x + drop(mixed);
  x = x + expand_dims(nn::linear(trace, "memory", memory, sizes.width), 1);
  const Tensor hidden =
      gelu(nn::linear(trace, "up", nn::layer_norm(trace, "norm", x), sizes.hidden));
  return x + drop(nn::linear(trace, "down", drop(hidden), sizes.width,
                             {.weight_initializer = of_branch(sizes)}));
}

LanguageModelHead decode(Trace& trace, Tensor memory, Tensor tokens, Tensor places,
                         const DecoderSizes& sizes, const nn::CacheOptions& cache) {
  const Scope scope(trace, "decoder");
  Tensor x = nn::embedding(trace, "tokens", tokens, sizes.vocabulary, sizes.width);
  const Tensor positions = nn::embedding_table(trace, "positions", kTextPlaces, sizes.width);
  x = nn::dropout(trace, x + gather(positions, places), sizes.dropout);
  for (int64_t i = 0; i < sizes.layers; ++i) {
    const Scope layers(trace, fmt::format("layers.{}", i));
    x = layer(trace, x, memory, sizes, cache);
  }
  x = nn::layer_norm(trace, "final_norm", x);
  return {x, nn::embedding_table(trace, "tokens", sizes.vocabulary, sizes.width), ""};
}

}  // namespace

Tensor adapt_surface(Trace& trace, Tensor surface, const DecoderSizes& sizes) {
  const Scope scope(trace, "adapter");
  const int64_t inner = sizes.surface / 2;
  const auto glorot = [](int64_t outputs, int64_t inputs) {
    return nn::LinearOptions{.weight_initializer = Initializer::normal(
                                 std::sqrt(2.0 / static_cast<double>(outputs + inputs)))};
  };
  Tensor x = gelu(nn::linear(trace, "inner", surface, inner, glorot(inner, sizes.surface)));
  x = nn::dropout(trace, nn::layer_norm(trace, "inner_norm", x), sizes.dropout);
  x = nn::linear(trace, "memory", x, sizes.memory, glorot(sizes.memory, inner));
  return nn::layer_norm(trace, "norm", x);
}

LanguageModelHead decode_texts(Trace& trace, Tensor memory, Tensor tokens,
                               const DecoderSizes& sizes) {
  const Tensor places = iota(trace.builder(), {DType::i64, {tokens.dim(1)}}, 0);
  return decode(trace, memory, tokens, places, sizes, {});
}

Tensor decode_step(Trace& trace, Tensor memory, const WritingStep& step,
                   const DecoderSizes& sizes) {
  const LanguageModelHead head =
      decode(trace, memory, expand_dims(step.tokens, 1), reshape(step.position, {1}), sizes,
             {.position = step.position, .capacity = step.capacity, .rows = step.rows});
  return cast(squeeze(language_model_logits(trace, head), 1), DType::f32);
}

TeacherForcing teacher_forcing(Tensor tokens, int32_t padding, int32_t begin, int32_t end) {
  const int64_t batch = tokens.dim(0), length = tokens.dim(1);
  GraphBuilder& builder = tokens.builder();
  const auto column = [&](DType dtype, double value) {
    return full(builder, {dtype, {batch, 1}}, value);
  };
  const Tensor shifted[] = {column(DType::i32, begin), slice(tokens, 1, 0, length - 1)};
  const Tensor is_padding = equal(tokens, static_cast<double>(padding));
  const Tensor before[] = {column(DType::boolean, 0), slice(is_padding, 1, 0, length - 1)};
  const Tensor is_first = logical_and(is_padding, logical_not(concat(before, 1)));
  const Tensor behind =
      select(is_first, full(builder, tokens.type(), end), full(builder, tokens.type(), -1));
  return {concat(shifted, 1), select(is_padding, behind, tokens)};
}

}  // namespace fullbore::energy_flow
