#include "fullbore/nn/bert_encoder.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"

namespace fullbore::nn {
namespace {

// [B,T,C] -> [B,H,T,C/H]
Tensor heads_of(Tensor x, int64_t heads) {
  return swap_axes(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

Tensor bert_layer(Trace& trace, Tensor x, Tensor mask, const BertConfig& config) {
  const auto norm = [&](const char* name, Tensor y) {
    return layer_norm(trace, name, y, {.epsilon = config.epsilon});
  };
  const auto project = [&](const char* name, Tensor y, int64_t outputs) {
    return linear(trace, name, y, outputs);
  };
  const auto attend = [&](Tensor y) {
    const Scope scope(trace, "attention");
    const auto part = [&](const char* name) {
      return heads_of(project(name, y, config.width), config.heads);
    };
    const Tensor query = part("query"), key = part("key"), value = part("value");
    const Tensor seen = attention(query, key, value, {.mask = mask});
    return project("projection", reshape(swap_axes(seen, 1, 2), y.shape()), config.width);
  };
  const auto transform = [&](Tensor y) {
    const Scope scope(trace, "mlp");
    return project("down", gelu(project("up", y, config.hidden)), config.width);
  };
  x = norm("attention_norm", x + attend(x));
  return norm("mlp_norm", x + transform(x));
}

}  // namespace

int64_t bert_parameters(const BertConfig& config) {
  const int64_t width = config.width, norm = 2 * width;
  const int64_t embeddings = (config.vocabulary + config.context + config.types) * width + norm;
  const int64_t attention = 4 * (width * width + width);
  const int64_t mlp = 2 * width * config.hidden + config.hidden + width;
  return embeddings + config.layers * (attention + mlp + 2 * norm);
}

Tensor bert_states(Trace& trace, Tensor tokens, Tensor lengths, const BertConfig& config,
                   SourceLoc loc) {
  const int64_t batch = tokens.dim(0), places = tokens.dim(1), width = config.width;
  if (places > config.context)
    throw UsageError(fmt::format("{} tokens; the text encoder reads {}", places, config.context),
                     loc);
  if (width % config.heads != 0)
    throw UsageError(fmt::format("a width of {} is no multiple of {} heads", width, config.heads),
                     loc);
  const Tensor words = embedding(trace, "token_embedding", tokens, config.vocabulary, width);
  const Tensor positions = embedding_table(trace, "position_embedding", config.context, width);
  const Tensor types = embedding_table(trace, "type_embedding", config.types, width);
  const auto rows = [&](Tensor table, int64_t count) {
    return cast(slice(table, 0, 0, count), words.dtype());
  };
  Tensor x = layer_norm(trace, "embedding_norm", words + rows(positions, places) + rows(types, 1),
                        {.epsilon = config.epsilon});
  const Tensor place = iota(lengths.builder(), {lengths.dtype(), {batch, 1, 1, places}}, 3);
  const Tensor mask = less(place, reshape(lengths, {batch, 1, 1, 1}));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const Scope scope(trace, fmt::format("layers.{}", layer));
    x = bert_layer(trace, x, mask, config);
  }
  return x;
}

}  // namespace fullbore::nn
