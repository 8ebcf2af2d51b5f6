#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"
#include "fullbore/train/sampling.h"
#include "fullbore/train/sequence_states.h"

namespace fullbore {

/// A language model as the generator knows it: a step that appends `tokens` i32 [S,T] to S texts at
/// place `position` (i64[]) and gives the logits f32 [S,V] of what follows row `row` (i64[]) of them.
/// What the tokens before have left (keys and values, a recurrent state) is State of the step, with
/// room for `capacity` places. Tokens behind `row` are padding: they are written again before they
/// are read. A model without a context (capacity 0) is given no padding: `row` is the last one.
using DecodeFunction = std::function<Tensor(Trace& trace, Tensor tokens, Tensor position,
                                            Tensor row, int64_t capacity)>;

struct GeneratorSizes {
  int64_t samples = 1;     ///< texts continued at once
  int64_t context = 1;     ///< places that the model knows; 0: it remembers, and knows no places
  int64_t vocabulary = 0;  ///< tokens that there are; logits beyond are ignored; 0: all of them
  int64_t chunk = 64;      ///< tokens of a prompt taken at once, at most
};

/// Continues texts, token by token, with compiled programs on one State: one that takes a chunk of
/// every text (prefill) and one that takes a token of each. The State must outlive it.
///
/// Beyond the context: when every place is taken, the last half of the context (the newest tokens)
/// is taken anew from place 0, and the rest forgotten. Positions are learned ones, so the cache
/// cannot slide; recomputing half of it every context / 2 tokens is the honest window.
///
/// Without a context nothing is ever taken anew, and texts may be of any length. A prompt comes in chunks of
/// exact lengths, each program compiled when it is needed first: as many of `chunk` tokens as it has, then of an
/// eighth of that, and so on down to 32, then single ones.
class Generator {
 public:
  Generator(DecodeFunction decode, const GeneratorSizes& sizes, State& state,
            const CompileOptions& options);

  /// The graph for `length` tokens of each text; for whoever wants its State first. Inputs `tokens`,
  /// `position`, `row`; result `logits`.
  static Graph trace(const DecodeFunction& decode, const GeneratorSizes& sizes, int64_t length);

  /// Begins all texts with `prompt`, which must not be empty; of a longer one than the context the
  /// last `context` tokens count.
  void begin(std::span<const int32_t> prompt);
  /// Appends one token to each text.
  void append(std::span<const int32_t> tokens);
  /// Appends the same tokens, at least one, to all texts, behind those that were made and not read yet. Without a
  /// context only.
  void extend(std::span<const int32_t> tokens);
  /// Logits of what follows text `sample`; valid until begin, append, extend or resume is called.
  std::span<const float> logits(int64_t sample) const;

  /// What the texts have left so far. Without a context only.
  SequenceStates sequences() const;
  /// Goes on from there: as many sequences as there are samples, of this model (SequenceStates::fits()).
  void resume(const SequenceStates& sequences);

  /// Has it read anything since it began or was resumed, or is there anything to read?
  bool can_go_on() const { return has_logits_ || about_.front().pending >= 0; }

  /// begin(prompt), then go_on().
  void generate(std::span<const int32_t> prompt, int64_t count, const SamplingOptions& options,
                uint64_t seed, const std::function<bool(int64_t sample, int32_t token)>& emit);
  /// Up to `count` tokens more for each text, each handed to `emit`, which says whether that text goes on.
  /// Token t that text s is given is made with draw t of stream s of its seed, so that a text is the same
  /// however many others there are, up to the rounding of the matmuls, and however often it is stopped.
  void go_on(int64_t count, const SamplingOptions& options,
             const std::function<bool(int64_t sample, int32_t token)>& emit);
  /// Whose draws make tokens from here on: stream `s` of the seed for text s.
  void set_seed(uint64_t seed);

 private:
  struct alignas(64) Block {
    int32_t tokens[16];
  };
  struct alignas(64) Index {
    int64_t value = 0;
  };
  struct LengthProgram {
    Program program;
    int64_t length;
    int logits;
  };

  bool has_context() const { return sizes_.context > 0; }
  LengthProgram compile(int64_t length);
  /// The program that takes `length` tokens at once, or some of them.
  LengthProgram& program_for(size_t length);
  /// Takes `length` tokens of every text, from where `texts` point, at the place that is free.
  void take(std::vector<const int32_t*> texts, size_t length);
  void take_newest(size_t length);
  void run(LengthProgram& program, std::span<const int32_t* const> texts, size_t used);
  /// The tokens that were made last and not read yet.
  void read_pending();
  void remember(SequenceText& text, int32_t token) const;

  DecodeFunction decode_;
  GeneratorSizes sizes_;
  State& state_;
  CompileOptions options_;
  std::map<int64_t, LengthProgram> programs_;  ///< by length
  int64_t logits_extent_;                      ///< of the model, may be more than the vocabulary
  std::vector<std::vector<int32_t>> texts_;    ///< with a context, which may have to be taken anew
  std::vector<SequenceText> about_;
  int64_t position_ = 0;  ///< first free place
  std::vector<Block> tokens_;
  Index place_;
  Index row_;
  std::vector<float> last_logits_;  ///< [samples, logits of the model]
  bool has_logits_ = false;
};

}  // namespace fullbore
