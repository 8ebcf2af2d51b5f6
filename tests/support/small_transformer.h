#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "fullbore/ops/ops.h"
#include "fullbore/train/step_function.h"

/// A transformer of two layers that learns what follows a token: small enough for a machine that executes PTX.
namespace fullbore::testing_support {

inline constexpr int64_t kTokens = 11, kTexts = 4, kLength = 8, kModelWidth = 16, kHeads = 2;

/// Each token is 3 times the one before and 1, of 11.
class TokenChains : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* inputs = static_cast<int32_t*>(buffers[0]);
    auto* targets = static_cast<int32_t*>(buffers[1]);
    for (int64_t text = 0; text < kTexts; ++text) {
      auto token = static_cast<int32_t>((position * 5 + static_cast<uint64_t>(text) * 2) % kTokens);
      for (int64_t i = 0; i < kLength; ++i) {
        *inputs++ = token;
        token = static_cast<int32_t>((3 * token + 1) % kTokens);
        *targets++ = token;
      }
    }
  }

 private:
  std::vector<BatchField> fields_ = {{"inputs", {DType::i32, {kTexts, kLength}}},
                                     {"targets", {DType::i32, {kTexts, kLength}}}};
};

inline Tensor projected(Trace& trace, const char* name, Tensor x, int64_t outputs) {
  const Scope scope(trace, name);
  return linear(
      x, trace.parameter("weight", {outputs, x.dim(-1)},
                         Initializer::normal(1 / std::sqrt(static_cast<double>(x.dim(-1))))));
}

inline Tensor normalized(Trace& trace, const char* name, Tensor x) {
  return rms_norm(x, trace.parameter(name, {x.dim(-1)}, Initializer::ones()));
}

inline Loss small_transformer(Trace& trace, std::span<const Tensor> batch) {
  const int64_t texts = batch[0].dim(0);  // a microbatch has fewer
  Tensor h = gather(trace.parameter("embedding", {kTokens, kModelWidth}, Initializer::normal(1)),
                    batch[0]);
  const auto by_head = [&](Tensor x) {
    return transpose(reshape(x, {texts, kLength, kHeads, kModelWidth / kHeads}), {0, 2, 1, 3});
  };
  for (int layer = 0; layer < 2; ++layer) {
    const Scope scope(trace, fmt::format("layers.{}", layer));
    const Tensor x = normalized(trace, "attention_norm", h);
    const Tensor query = by_head(projected(trace, "query", x, kModelWidth));
    const Tensor key = by_head(projected(trace, "key", x, kModelWidth));
    const Tensor value = by_head(projected(trace, "value", x, kModelWidth));
    const Tensor seen = attention(query, key, value, {.causal = true});
    h = h + projected(trace, "output",
                      reshape(transpose(seen, {0, 2, 1, 3}), {texts, kLength, kModelWidth}),
                      kModelWidth);
    const Tensor up = projected(trace, "up", normalized(trace, "mlp_norm", h), 2 * kModelWidth);
    h = h + projected(trace, "down", gelu(up), kModelWidth);
  }
  const Tensor logits = projected(trace, "head", normalized(trace, "norm", h), kTokens);
  return reduce_mean(cross_entropy(logits, batch[1]), {0, 1});
}

}  // namespace fullbore::testing_support
