#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

/// A language model as the generator knows it: tokens i32 [B,T] -> logits f32 [B,T,V], where the
/// logits at t follow from the tokens up to t alone.
using LogitsFunction = std::function<Tensor(Trace& trace, Tensor tokens)>;

struct SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0: always the most likely token
  int64_t top_k = 0;       ///< only the k most likely tokens; 0: all
};

/// Draws from softmax(logits / temperature) restricted to the k largest logits; ties go to the
/// lower id. NumericalError if no probability can be made of the logits.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws);

/// Continues token sequences. One program over a fixed window: the last `context` tokens, from the
/// left, what is to their right without influence. State and Team must outlive it.
class Generator {
 public:
  Generator(const LogitsFunction& logits, int64_t context, State& state, Team& team,
            const CompileOptions& options);

  /// The graph it runs, for whoever wants its State first: input `tokens`, result `logits`.
  static Graph trace(const LogitsFunction& logits, int64_t context);

  /// Logits [V] of the token that follows; `tokens` must not be empty. Valid until the next call.
  std::span<const float> next_logits(std::span<const int32_t> tokens);

  /// Appends `count` tokens to `prompt` (not empty), handing each to `emit`.
  void generate(std::vector<int32_t> prompt, int64_t count, const SamplingOptions& options,
                uint64_t seed, const std::function<void(int32_t)>& emit);

 private:
  struct alignas(64) Block {
    int32_t tokens[16];
  };
  Program program_;
  int output_;
  int64_t context_;
  int64_t vocabulary_;
  std::vector<Block> window_;
};

}  // namespace fullbore
