#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/train/paged_decode.h"
#include "fullbore/train/sampling.h"

namespace fullbore {

/// A prompt and how many completions are wanted of it.
struct RolloutPrompt {
  std::vector<int32_t> tokens;  ///< at least one
  int64_t samples = 1;          ///< G, completions
  /// Of each, with the stop token. A completion ends by FinishReason::length too where its last token would have no
  /// place in the context: at most context + 1 - tokens.
  int64_t max_new_tokens = 1;
  uint32_t index = 0;  ///< the prompt's word in the counters of its draws
};

enum class FinishReason : uint8_t {
  stopped,  ///< by a stop token, or by RolloutOptions::goes_on
  length    ///< by max_new_tokens or the context
};

/// One completion.
struct RolloutRow {
  size_t prompt = 0;            ///< which of the prompts
  uint32_t sample = 0;          ///< which of its completions, below `samples`
  std::vector<int32_t> tokens;  ///< with the stop token, and nothing behind it
  /// Of each token its log-probability by the model: temperature 1, all of the vocabulary.
  std::vector<float> raw;
  /// The same by what it was drawn from: after all of SamplingOptions, renormalised.
  std::vector<float> sampled;
  FinishReason reason = FinishReason::length;
};

struct RolloutOptions {
  SamplingOptions sampling = {};
  std::vector<int32_t> stop_tokens = {};
  uint64_t key = 0;   ///< of the draws: the run's seed
  uint32_t step = 0;  ///< the step's word in their counters
  /// A row whose places are all taken takes the newest half of the context anew and goes on, and of a prompt that is
  /// longer than the context its last tokens count. Else the context ends a row.
  bool slides = false;
  /// Called with a completion before each token of it is drawn, with a place for each token of the vocabulary, all true:
  /// what it makes false is not drawn, as if its logit were -infinity; `sampled` is by what is left. It must leave one.
  /// Draws are the host's then, one token a launch. Rows are called in no order, on the calling thread.
  std::function<void(const RolloutRow& row, std::vector<bool>& allowed)> allow = {};
  /// Called with a completion as each token is appended, which may end it: the row holds the token already. Rows are
  /// called in no order, on the calling thread.
  std::function<bool(const RolloutRow& row)> goes_on = {};
};

struct RolloutSizes {
  int64_t slots = 1;       ///< completions that grow side by side
  int64_t context = 1;     ///< places of a prompt with its completion: at most what the model knows
  int64_t vocabulary = 0;  ///< tokens that there are; logits beyond are never drawn
  int64_t chunk = 64;      ///< tokens of a prompt that are read at once, at most
  int64_t prefilled = 8;   ///< prompts that are read side by side, at most
  /// The pool has pages for so many rows of the whole context; 0: as many as any prompts may need, slots + prefilled + 1.
  /// MemoryError where a run needs more.
  int64_t pool_rows = 0;
  int64_t tokens_per_launch = 1;  ///< of each row, in one replay of a compiled loop
  DType pool_dtype = DType::f32;  ///< of keys and values in the pool
};

/// What the pool of a model that is compiled like this is to be of: its precision, in which a whole pass has keys and
/// values too; f32 where modules of it stay f32, for those that attend may be among them.
DType pool_dtype(const CompileOptions& options);

/// What a run has done, and how long it took.
struct RolloutCounts {
  int64_t rows = 0;
  int64_t prefilled_tokens =
      0;  ///< of prompts, each read once however many samples are wanted of it
  int64_t generated_tokens = 0;
  int64_t prefill_launches = 0;
  int64_t decode_launches = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;  ///< draws included
};

/// Completes prompts, many rows side by side, over one pool of pages of keys and values. A prompt is read once, and its
/// samples share its pages; each slot that a row leaves is given to the next row at once. The pool has room for as many
/// rows as there are slots, however many are asked for.
///
/// Token t of a sample is drawn by word 0 of Philox4x32-10 with the key and the counter (step, prompt index, sample, t):
/// what a row becomes depends on no other row, on no order and on no size here, up to the rounding of the matmuls.
///
/// `state` holds the parameters and the pool (trace() says which entries) and must outlive it; parameters that others have
/// written since are read as they are then.
/// Source: Kwon et al. 2023, arXiv:2309.06180, sections 4.3 and 4.4.
class Rollout {
 public:
  Rollout(PagedDecodeFunction decode, const RolloutSizes& sizes, State& state,
          const CompileOptions& options);
  Rollout(Rollout&&) noexcept;
  Rollout& operator=(Rollout&&) noexcept;
  ~Rollout();

  /// The graph of one step, for whoever wants its State first.
  static Graph trace(const PagedDecodeFunction& decode, const RolloutSizes& sizes);

  /// Completes all of the prompts. Rows are handed over as they end, in no order, on the calling thread, between two
  /// launches. UsageError, before anything runs, for a prompt that is empty or longer than the context, for tokens
  /// outside of the vocabulary, for numbers of samples or tokens below 1; NumericalError for logits that are not finite.
  RolloutCounts run(std::span<const RolloutPrompt> prompts, const RolloutOptions& options,
                    const std::function<void(RolloutRow&& row)>& finished);

  /// Pages that hold keys and values: none between runs.
  int32_t used_pages() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fullbore
