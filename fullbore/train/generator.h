#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"
#include "fullbore/train/sampling.h"

namespace fullbore {

/// A language model as the generator knows it: a step that appends `tokens` i32 [S,T] to S texts at
/// place `position` (i64[]) and gives the logits f32 [S,V] of what follows row `row` (i64[]) of them.
/// What the tokens before have left (keys and values, a recurrent state) is State of the step, with
/// room for `capacity` places. Tokens behind `row` are padding: they are written again before they
/// are read.
using DecodeFunction = std::function<Tensor(Trace& trace, Tensor tokens, Tensor position,
                                            Tensor row, int64_t capacity)>;

struct GeneratorSizes {
  int64_t samples = 1;     ///< texts continued at once
  int64_t context = 1;     ///< places that the model knows
  int64_t vocabulary = 0;  ///< tokens that there are; logits beyond are ignored; 0: all of them
  int64_t chunk = 64;      ///< tokens of a prompt taken at once
};

/// Continues texts, token by token, with two compiled programs on one State: one that takes a chunk of
/// every text (prefill) and one that takes a token of each. State and Team must outlive it.
///
/// Beyond the context: when every place is taken, the last half of the context (the newest tokens)
/// is taken anew from place 0, and the rest forgotten. Positions are learned ones, so the cache
/// cannot slide; recomputing half of it every context / 2 tokens is the honest window.
class Generator {
 public:
  Generator(DecodeFunction decode, const GeneratorSizes& sizes, State& state, Team& team,
            const CompileOptions& options);

  /// The graph for `length` tokens of each text; for whoever wants its State first. Inputs `tokens`,
  /// `position`, `row`; result `logits`.
  static Graph trace(const DecodeFunction& decode, const GeneratorSizes& sizes, int64_t length);

  /// Begins all texts with `prompt`, which must not be empty; of a longer one than the context the
  /// last `context` tokens count.
  void begin(std::span<const int32_t> prompt);
  /// Appends one token to each text.
  void append(std::span<const int32_t> tokens);
  /// Logits of what follows text `sample`; valid until begin or append is called.
  std::span<const float> logits(int64_t sample) const;

  /// begin(prompt), then up to `count` tokens for each text, each handed to `emit`, which says whether
  /// that text goes on. Text s draws from stream s of the seed, so that the first text is the same
  /// however many there are, up to the rounding of the products.
  void generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                uint64_t seed, const std::function<bool(int64_t sample, int32_t token)>& emit);

 private:
  struct alignas(64) Block {
    int32_t tokens[16];
  };
  struct alignas(64) Index {
    int64_t value = 0;
  };
  struct Step {
    Program program;
    int64_t length;
    int logits;
  };

  Step compile(int64_t length);
  Step& prefill();
  /// Takes `length` tokens of every text, those from `first` on, at the place that is free.
  void take(size_t first, size_t length);
  void run(Step& step, size_t first, size_t used);

  DecodeFunction decode_;
  GeneratorSizes sizes_;
  State& state_;
  Team& team_;
  CompileOptions options_;
  Step step_;
  std::optional<Step> prefill_;
  int64_t logits_extent_;  ///< of the model, may be more than the vocabulary
  std::vector<std::vector<int32_t>> texts_;
  int64_t position_ = 0;  ///< first free place
  std::vector<Block> tokens_;
  Index place_;
  Index row_;
  const float* last_logits_ = nullptr;
};

}  // namespace fullbore
