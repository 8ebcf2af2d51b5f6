#include "fullbore/nn/decoder_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"

namespace fullbore::nn {
namespace {

using Style = DecoderConfig::Style;

int64_t hidden_of(const DecoderConfig& config) {
  return config.hidden > 0 ? config.hidden : 4 * config.width;
}

// Each block adds two branches to the residual stream: their last layers start smaller, so that its variance does not
// grow with depth (Radford et al. 2019, section 2.3).
Initializer of_branch(const DecoderConfig& config) {
  return Initializer::normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

Tensor norm(Trace& trace, const char* name, Tensor x, const DecoderConfig& config) {
  if (config.style == Style::llama) return rms_norm(trace, name, x, config.epsilon);
  return layer_norm(trace, name, x, {.bias = config.bias, .epsilon = config.epsilon});
}

KeyValues before(const DecoderInputs& inputs, int64_t layer) {
  return inputs.additions.before ? inputs.additions.before(layer) : KeyValues();
}

LinearAddition beside(const DecoderInputs& inputs, int64_t layer) {
  if (!inputs.additions.beside) return {};
  return [&inputs, layer](const std::string& part, Tensor x, int64_t outputs) {
    return inputs.additions.beside(layer, part, x, outputs);
  };
}

Tensor gpt2_attention(Trace& trace, Tensor x, int64_t layer, const DecoderInputs& inputs,
                      const DecoderConfig& config) {
  return self_attention(trace, "attention", x,
                        {.heads = config.heads,
                         .causal = true,
                         .bias = config.bias,
                         .dropout = config.dropout,
                         .projection_initializer = of_branch(config),
                         .mask = inputs.mask,
                         .cache = inputs.cache,
                         .before = before(inputs, layer),
                         .beside = beside(inputs, layer)});
}

Tensor llama_attention(Trace& trace, Tensor x, int64_t layer, const RotaryTables& rotary,
                       const DecoderInputs& inputs, const DecoderConfig& config) {
  return grouped_attention(trace, "attention", x,
                           {.heads = config.heads,
                            .groups = config.key_heads(),
                            .head_width = config.key_width(),
                            .bias = config.attention_bias,
                            .projection_bias = config.projection_bias,
                            .rotary = rotary,
                            .window = layer >= config.window_layer ? config.window : 0,
                            .dropout = config.dropout,
                            .projection_initializer = of_branch(config),
                            .mask = inputs.mask,
                            .cache = inputs.cache,
                            .before = before(inputs, layer),
                            .beside = beside(inputs, layer)});
}

Tensor mlp(Trace& trace, Tensor x, const DecoderConfig& config) {
  const int64_t hidden = hidden_of(config);
  if (config.style == Style::llama)
    return gated_mlp(
        trace, "mlp", x,
        {.hidden = hidden, .bias = config.mlp_bias, .down_initializer = of_branch(config)});
  const Tensor up = linear(trace, "mlp.up", x, hidden, {.bias = config.bias});
  return linear(trace, "mlp.down", gelu(up, config.tanh_gelu), config.width,
                {config.bias, of_branch(config)});
}

// i64 [T]: 0, 1, ... behind what the cache holds; or those that were given.
Tensor positions_of(Trace& trace, const DecoderInputs& inputs) {
  if (inputs.positions.valid()) return inputs.positions;
  const Tensor first = iota(trace.builder(), {DType::i64, {inputs.embeddings.dim(1)}}, 0);
  const Tensor behind = inputs.cache.position;
  if (!behind.valid()) return first;
  return first + (behind.rank() == 1 ? expand_dims(behind, 1) : behind);  // paged: by row
}

void check_inputs(const DecoderInputs& inputs, const DecoderConfig& config,
                  std::span<const int64_t> layers, SourceLoc loc) {
  const Tensor x = inputs.embeddings;
  if (x.rank() != 3 || x.dim(2) != config.width)
    throw UsageError(
        fmt::format("decoder: needs embeddings [B,T,{}], got {}", config.width, x.type().text()),
        loc);
  // Behind a cache's position there may be padding of a chunk.
  if (!inputs.cache.position.valid() && !inputs.positions.valid() && x.dim(1) > config.context)
    throw UsageError(fmt::format("decoder: {} tokens, the context is {}", x.dim(1), config.context),
                     loc);
  for (const int64_t layer : layers)
    if (layer < 0 || layer > config.layers)
      throw UsageError(
          fmt::format("decoder: there is no layer {} among 0 ... {}", layer, config.layers), loc);
}

}  // namespace

void check_decoder(const DecoderConfig& config, SourceLoc loc) {
  const auto require = [&](bool fits, const std::string& what) {
    if (!fits) throw UsageError("decoder: " + what, loc);
  };
  const auto positive = [&](int64_t value, const char* name) {
    require(value > 0, fmt::format("{} is {}; at least 1 was expected", name, value));
  };
  positive(config.vocabulary, "vocabulary");
  positive(config.layers, "layers");
  positive(config.heads, "heads");
  positive(config.width, "width");
  positive(config.context, "context");
  const bool gpt2 = config.style == Style::gpt2;
  require((config.head_width > 0 && !gpt2) || config.width % config.heads == 0,
          fmt::format("width {} is not a multiple of {} heads", config.width, config.heads));
  require(config.epsilon >= 0, fmt::format("epsilon {} is negative", config.epsilon));
  if (gpt2) return;
  require(config.heads % config.key_heads() == 0,
          fmt::format("{} heads are not a multiple of {} groups", config.heads, config.groups));
  require(config.key_width() % 2 == 0,
          fmt::format("heads of width {} have no pairs to turn", config.key_width()));
  require(config.theta > 0, fmt::format("theta {} is not positive", config.theta));
  require(config.window >= 0, fmt::format("window {} is negative", config.window));
}

int64_t decoder_parameters(const DecoderConfig& config) {
  const int64_t width = config.width, hidden = hidden_of(config);
  const int64_t table = config.vocabulary * width;
  int64_t block = 0, rest = config.tie_head ? table : 2 * table;
  if (config.style == Style::gpt2) {
    block = 4 * width * width + 2 * width * hidden + 2 * width;
    if (config.bias) block += 4 * width + hidden + width + 2 * width;
    rest += config.context * width + (config.bias ? 2 : 1) * width;
  } else {
    const int64_t queries = config.heads * config.key_width();
    const int64_t keys = config.key_heads() * config.key_width();
    block = 2 * width * (queries + keys) + 3 * width * hidden + 2 * width;
    if (config.attention_bias) block += queries + 2 * keys;
    if (config.projection_bias) block += width;
    if (config.mlp_bias) block += 2 * hidden + width;
    rest += width;
  }
  return rest + config.layers * block;
}

Tensor decoder_token_table(Trace& trace, const DecoderConfig& config) {
  return embedding_table(trace, "token_embedding", config.vocabulary, config.width);
}

Tensor decoder_embeddings(Trace& trace, Tensor tokens, const DecoderConfig& config) {
  const Tensor table = decoder_token_table(trace, config);
  const Scope scope(trace, "token_embedding");
  return gather(table, tokens);
}

DecoderStates decoder_states(Trace& trace, const DecoderInputs& inputs, const DecoderConfig& config,
                             std::span<const int64_t> layers, SourceLoc loc) {
  check_decoder(config, loc);
  check_inputs(inputs, config, layers, loc);
  DecoderStates states;
  states.chosen.resize(layers.size());
  const auto keep = [&](int64_t layer, Tensor x) {
    for (size_t i = 0; i < layers.size(); ++i)
      if (layers[i] == layer) states.chosen[i] = x;
  };
  Tensor x = inputs.embeddings;
  RotaryTables rotary;
  if (config.style == Style::llama) {
    rotary = rotary_tables(positions_of(trace, inputs),
                           rotary_frequencies(config.key_width(), config.theta, config.scaling));
  } else {
    const Tensor table = embedding_table(trace, "position_embedding", config.context, config.width);
    // Places beyond the context, of padding only, read zeros.
    x = x + cast(gather(table, positions_of(trace, inputs)), x.dtype());
    x = dropout(trace, x, config.dropout);
  }
  keep(0, x);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const Scope scope(trace, fmt::format("layers.{}", layer));
    Tensor h = norm(trace, "attention_norm", x, config);
    h = config.style == Style::llama ? llama_attention(trace, h, layer, rotary, inputs, config)
                                     : gpt2_attention(trace, h, layer, inputs, config);
    x = x + dropout(trace, h, config.dropout);
    h = mlp(trace, norm(trace, "mlp_norm", x, config), config);
    x = x + dropout(trace, h, config.dropout);
    if (inputs.additions.behind) x = inputs.additions.behind(layer, x);
    keep(layer + 1, x);
  }
  states.last = norm(trace, "final_norm", x, config);
  return states;
}

LanguageModelHead decoder_head(Trace& trace, Tensor hidden, const DecoderConfig& config) {
  // A token table that is the head too is no module of its own.
  return {hidden,
          embedding_table(trace, config.tie_head ? "token_embedding" : "head", config.vocabulary,
                          config.width),
          config.tie_head ? "" : "head"};
}

}  // namespace fullbore::nn
