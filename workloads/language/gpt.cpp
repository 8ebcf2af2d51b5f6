#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/grouped_attention.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"
#include "fullbore/text/paged_rows.h"
#include "workloads/language/models.h"

namespace fullbore {
namespace {

constexpr double kTheta = 10000;
constexpr double kNormEpsilon = 1e-5;

Tensor norm(Trace& trace, const std::string& name, Tensor x, const LanguageModelConfig& config) {
  return config.rms_norm ? nn::rms_norm(trace, name, x, kNormEpsilon)
                         : nn::layer_norm(trace, name, x, {.bias = config.bias});
}

// places: integer [T] or [B,T].
nn::RotaryTables rotary_of(Tensor places, const LanguageModelConfig& config) {
  if (!config.rotary) return {};
  return nn::rotary_tables(places, nn::rotary_frequencies(config.width / config.heads, kTheta));
}

// What is added to the tokens' embeddings, with learned positions.
Tensor with_places(Trace& trace, Tensor x, Tensor places, const LanguageModelConfig& config) {
  if (config.rotary) return x;
  const Tensor table =
      nn::embedding_table(trace, "position_embedding", config.context, config.width);
  return x + gather(table, places);
}

// x + attention(norm(x)), then x + mlp(norm(x)); x [B,T,C].
Tensor block(Trace& trace, const std::string& name, Tensor x, const LanguageModelConfig& config,
             const nn::RotaryTables& rotary, Tensor mask, const nn::CacheOptions& cache) {
  const Scope scope(trace, name);
  // Each block adds two branches to the residual stream: their last layers start smaller, so that
  // its variance does not grow with depth (Radford et al. 2019, section 2.3).
  const auto residual =
      Initializer::normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));

  Tensor h = norm(trace, "attention_norm", x, config);
  h = config.rotary ? nn::grouped_attention(trace, "attention", h,
                                            {.heads = config.heads,
                                             .groups = config.heads,
                                             .bias = config.bias,
                                             .projection_bias = config.bias,
                                             .rotary = rotary,
                                             .dropout = config.dropout,
                                             .projection_initializer = residual,
                                             .mask = mask,
                                             .cache = cache})
                    : nn::self_attention(trace, "attention", h,
                                         {.heads = config.heads,
                                          .causal = true,
                                          .bias = config.bias,
                                          .dropout = config.dropout,
                                          .projection_initializer = residual,
                                          .mask = mask,
                                          .cache = cache});
  x = x + nn::dropout(trace, h, config.dropout);

  h = norm(trace, "mlp_norm", x, config);
  h = nn::linear(trace, "mlp.up", h, 4 * config.width, {.bias = config.bias});
  h = nn::linear(trace, "mlp.down", gelu(h, config.tanh_gelu), config.width,
                 {config.bias, residual});
  return x + nn::dropout(trace, h, config.dropout);
}

Tensor blocks(Trace& trace, Tensor x, const LanguageModelConfig& config,
              const nn::RotaryTables& rotary, Tensor mask = {},
              const nn::CacheOptions& cache = {}) {
  x = nn::dropout(trace, x, config.dropout);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    x = block(trace, fmt::format("layers.{}", layer), x, config, rotary, mask, cache);
  return x;
}

LanguageModelHead head(Trace& trace, Tensor x, const LanguageModelConfig& config) {
  x = norm(trace, "final_norm", x, config);
  // A token table that is the head too is no module of its own.
  return {x,
          nn::embedding_table(trace, config.tie_head ? "token_embedding" : "head",
                              config.vocabulary, config.width),
          config.tie_head ? "" : "head"};
}

void require_context(Tensor tokens, const LanguageModelConfig& config) {
  if (tokens.dim(1) > config.context)
    throw UsageError(
        fmt::format("gpt: {} tokens, the context is {}", tokens.dim(1), config.context));
}

// Everything below the head, [B,T,C].
Tensor body(Trace& trace, Tensor tokens, const LanguageModelConfig& config) {
  require_context(tokens, config);
  const int64_t length = tokens.dim(1);
  const Tensor x = nn::embedding(trace, "token_embedding", tokens, config.vocabulary, config.width);
  if (config.rotary)
    return blocks(trace, x, config,
                  rotary_of(iota(trace.builder(), {DType::i64, {length}}, 0), config));
  const Tensor positions =
      nn::embedding_table(trace, "position_embedding", config.context, config.width);
  // [B,T,C] + [T,C]
  return blocks(trace, x + slice(positions, 0, 0, length), config, {});
}

// Of tokens at such places of their texts, integer [B,T], which see what the mask says.
Tensor placed_body(Trace& trace, Tensor tokens, Tensor places, Tensor mask,
                   const LanguageModelConfig& config) {
  const Tensor x = nn::embedding(trace, "token_embedding", tokens, config.vocabulary, config.width);
  return blocks(trace, with_places(trace, x, places, config), config, rotary_of(places, config),
                mask);
}

Tensor packed_body(Trace& trace, const PackedTokens& inputs, const LanguageModelConfig& config) {
  require_context(inputs.tokens, config);
  return placed_body(trace, inputs.tokens, inputs.positions, nn::same_segment(inputs.segments),
                     config);
}

}  // namespace

LanguageModelHead gpt_hidden(Trace& trace, Tensor tokens, const LanguageModelConfig& config) {
  return head(trace, body(trace, tokens, config), config);
}

LanguageModelHead gpt_branched_hidden(Trace& trace, const BranchedTokens& inputs,
                                      const LanguageModelConfig& config) {
  return head(
      trace,
      placed_body(trace, inputs.tokens, inputs.positions, nn::same_branch(inputs.branches), config),
      config);
}

Tensor gpt(Trace& trace, Tensor tokens, const LanguageModelConfig& config) {
  return language_model_logits(trace, gpt_hidden(trace, tokens, config));
}

Tensor gpt_packed(Trace& trace, const PackedTokens& inputs, const LanguageModelConfig& config) {
  return language_model_logits(trace, head(trace, packed_body(trace, inputs, config), config));
}

Tensor gpt_decode(Trace& trace, const DecodeInputs& inputs, const LanguageModelConfig& config) {
  const int64_t length = inputs.tokens.dim(1);
  const Tensor x =
      nn::embedding(trace, "token_embedding", inputs.tokens, config.vocabulary, config.width);
  // Places beyond the context, of padding only, read zeros.
  const Tensor places = iota(trace.builder(), {DType::i64, {length}}, 0) + inputs.position;
  const Tensor h =
      blocks(trace, with_places(trace, x, places, config), config, rotary_of(places, config), {},
             {.position = inputs.position, .capacity = inputs.capacity});
  const Tensor row = dynamic_slice(h, inputs.row, 1, 1);
  return squeeze(language_model_logits(trace, head(trace, row, config)), 1);
}

Tensor gpt_paged_decode(Trace& trace, const PagedInputs& inputs,
                        const LanguageModelConfig& config) {
  const Tensor x =
      nn::embedding(trace, "token_embedding", inputs.tokens, config.vocabulary, config.width);
  const Tensor places = iota(trace.builder(), {DType::i64, inputs.tokens.shape()}, 1) +
                        expand_dims(inputs.position, 1);
  const Tensor h = blocks(trace, with_places(trace, x, places, config), config,
                          rotary_of(places, config), {}, paged_cache(inputs));
  return squeeze(language_model_logits(trace, head(trace, last_rows(h, inputs), config)), 1);
}

LanguageModelLoss gpt_loss(Trace& trace, Tensor tokens, Tensor targets,
                           const LanguageModelConfig& config,
                           const LanguageModelLossOptions& options) {
  return language_model_loss(trace, head(trace, body(trace, tokens, config), config), targets,
                             options);
}

LanguageModelLoss gpt_packed_loss(Trace& trace, const PackedTokens& inputs, Tensor targets,
                                  const LanguageModelConfig& config,
                                  const LanguageModelLossOptions& options) {
  return language_model_loss(trace, head(trace, packed_body(trace, inputs, config), config),
                             targets, options);
}

}  // namespace fullbore
