#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "models/models.h"

namespace fullbore {
namespace {

// x + attention(norm(x)), then x + mlp(norm(x)); x [B,T,C].
Tensor block(Trace& trace, const std::string& name, Tensor x, const LanguageModelConfig& config,
             Tensor mask, const nn::CacheOptions& cache) {
  const Scope scope(trace, name);
  // Each block adds two branches to the residual stream: their last layers start smaller, so that
  // its variance does not grow with depth (Radford et al. 2019, section 2.3).
  const auto residual =
      Initializer::normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));

  Tensor h = nn::layer_norm(trace, "attention_norm", x, {.bias = config.bias});
  h = nn::self_attention(trace, "attention", h,
                         {.heads = config.heads,
                          .causal = true,
                          .bias = config.bias,
                          .dropout = config.dropout,
                          .projection_initializer = residual,
                          .mask = mask,
                          .cache = cache});
  x = x + nn::dropout(trace, h, config.dropout);

  h = nn::layer_norm(trace, "mlp_norm", x, {.bias = config.bias});
  h = nn::linear(trace, "mlp.up", h, 4 * config.width, {.bias = config.bias});
  h = nn::linear(trace, "mlp.down", gelu(h, config.tanh_gelu), config.width,
                 {config.bias, residual});
  return x + nn::dropout(trace, h, config.dropout);
}

Tensor blocks(Trace& trace, Tensor x, const LanguageModelConfig& config, Tensor mask = {},
              const nn::CacheOptions& cache = {}) {
  x = nn::dropout(trace, x, config.dropout);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    x = block(trace, fmt::format("layers.{}", layer), x, config, mask, cache);
  return x;
}

// What the head reads and the head itself [V,C], whose product is the logits.
struct Head {
  Tensor hidden;
  Tensor weight;
};

Head head(Trace& trace, Tensor x, const LanguageModelConfig& config) {
  x = nn::layer_norm(trace, "final_norm", x, {.bias = config.bias});
  return {x, nn::embedding_table(trace, config.tie_head ? "token_embedding" : "head",
                                 config.vocabulary, config.width)};
}

// The product and what comes of it belong to the module "head", unless that is the token table.
template <class Make>
auto within_head(Trace& trace, const LanguageModelConfig& config, const Make& make) {
  if (config.tie_head) return make();
  const Scope scope(trace, "head");
  return make();
}

// hidden [B,T,C] -> logits [B,T,V].
Tensor logits(Trace& trace, const Head& head, const LanguageModelConfig& config) {
  return within_head(trace, config, [&] { return linear(head.hidden, head.weight); });
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
  const Tensor positions =
      nn::embedding_table(trace, "position_embedding", config.context, config.width);
  // [B,T,C] + [T,C]
  return blocks(trace, x + slice(positions, 0, 0, length), config);
}

Tensor packed_body(Trace& trace, const PackedTokens& inputs, const LanguageModelConfig& config) {
  require_context(inputs.tokens, config);
  const Tensor x =
      nn::embedding(trace, "token_embedding", inputs.tokens, config.vocabulary, config.width);
  const Tensor places =
      nn::embedding(trace, "position_embedding", inputs.positions, config.context, config.width);
  return blocks(trace, x + places, config, nn::same_segment(inputs.segments));
}

// Every chunk moves the head's gradient through memory once: for GPT-2 at four chunks that costs 4 % of the
// time and saves 3 % of the memory. With more rows the logits are what fills the memory.
constexpr int64_t kFewChunks = 4;

// Sum of the weighted losses [].
Tensor sum_of_losses(Trace& trace, const Head& head, Tensor targets,
                     const LanguageModelConfig& config, const LanguageModelLossOptions& options) {
  const int64_t rows = targets.type().elements();
  const bool many = rows > kFewChunks * linear_cross_entropy_rows(config.vocabulary);
  const bool fused =
      options.fused_head == FusedHead::on || (options.fused_head == FusedHead::automatic && many);
  if (fused)
    return within_head(trace, config, [&] {
      return linear_cross_entropy(head.hidden, head.weight, targets,
                                  {.loss = options.cross_entropy, .weights = options.weights});
    });
  Tensor losses = cross_entropy(logits(trace, head, config), targets, options.cross_entropy);
  if (options.weights.valid()) losses = losses * options.weights;
  return reduce_sum(losses, {0, 1});
}

LanguageModelLoss loss_of(Trace& trace, Tensor x, Tensor targets, const LanguageModelConfig& config,
                          const LanguageModelLossOptions& options) {
  const Tensor sum = sum_of_losses(trace, head(trace, x, config), targets, config, options);
  const int64_t ignored = options.cross_entropy.ignore_index;
  Tensor counted = logical_and(greater_equal(targets, 0.0),
                               less(targets, static_cast<double>(config.vocabulary)));
  if (ignored >= 0)
    counted = logical_and(counted, not_equal(targets, static_cast<double>(ignored)));
  Tensor weights = cast(counted, sum.dtype());
  if (options.weights.valid()) weights = weights * options.weights;
  const Tensor predictions = reduce_sum(weights, {0, 1});
  // Weights may add up to less than 1, counted targets only to 0.
  const Tensor divisor = options.weights.valid()
                             ? select(greater(predictions, 0.0), predictions, 1.0)
                             : maximum(predictions, 1.0);
  return {sum / divisor, predictions};
}

}  // namespace

Tensor gpt(Trace& trace, Tensor tokens, const LanguageModelConfig& config) {
  return logits(trace, head(trace, body(trace, tokens, config), config), config);
}

Tensor gpt_packed(Trace& trace, const PackedTokens& inputs, const LanguageModelConfig& config) {
  return logits(trace, head(trace, packed_body(trace, inputs, config), config), config);
}

Tensor gpt_decode(Trace& trace, const DecodeInputs& inputs, const LanguageModelConfig& config) {
  const int64_t length = inputs.tokens.dim(1);
  const Tensor x =
      nn::embedding(trace, "token_embedding", inputs.tokens, config.vocabulary, config.width);
  const Tensor table =
      nn::embedding_table(trace, "position_embedding", config.context, config.width);
  // Places beyond the context, of padding only, read zeros.
  const Tensor places = iota(trace.builder(), {DType::i64, {length}}, 0) + inputs.position;
  const Tensor h = blocks(trace, x + gather(table, places), config, {},
                          {.position = inputs.position, .capacity = inputs.capacity});
  const Tensor row = dynamic_slice(h, inputs.row, 1, 1);
  return squeeze(logits(trace, head(trace, row, config), config), 1);
}

LanguageModelLoss gpt_loss(Trace& trace, Tensor tokens, Tensor targets,
                           const LanguageModelConfig& config,
                           const LanguageModelLossOptions& options) {
  return loss_of(trace, body(trace, tokens, config), targets, config, options);
}

LanguageModelLoss gpt_packed_loss(Trace& trace, const PackedTokens& inputs, Tensor targets,
                                  const LanguageModelConfig& config,
                                  const LanguageModelLossOptions& options) {
  return loss_of(trace, packed_body(trace, inputs, config), targets, config, options);
}

}  // namespace fullbore
