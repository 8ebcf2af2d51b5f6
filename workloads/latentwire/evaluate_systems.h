#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workloads/latentwire/paired_statistics.h"
#include "workloads/latentwire/prompt_source.h"
#include "workloads/latentwire/trained_latent.h"

namespace fullbore::latentwire {

/// A way to give prompts to a receiver.
enum class System : uint8_t {
  text,    ///< BOS, context, question, anchor
  latent,  ///< the wire, as it is
  head,    ///< the first M tokens of the source: with the context first the question is lost
  question_first,  ///< the question and as much of the context as M tokens hold: the fair comparison
  replay,          ///< the text's tokens, read as vectors: it must answer as the text does
};
inline constexpr System kSystems[] = {System::text, System::latent, System::head,
                                      System::question_first, System::replay};
const char* system_name(System system);

/// Of the source's tokens at most `budget`, BOS and anchor beside them, as a receiver reads it.
std::vector<int32_t> cut_prompt(const Receiver& receiver, const Prompt& prompt, System system,
                                int64_t budget);
/// Tokens of the longest of these texts for a receiver, whole.
int64_t longest_prompt(const Receiver& receiver, std::span<const Prompt> prompts);

/// A token that was predicted first, as text, and how often.
struct Prediction {
  std::string text;
  int64_t count = 0;
};

/// What came of a system, prompt by prompt.
struct SystemScores {
  System system = System::text;
  int64_t budget = 0;  ///< of a text that is cut
  std::vector<std::string> answers = {};
  std::vector<double> exact_match = {}, f1 = {};
  /// Of the first answer that is right, all tokens.
  std::vector<Likelihood> likelihoods = {};
  std::vector<int64_t> first_content =
      {};  ///< where its first token is that is not white space alone
  std::vector<Prediction> predictions =
      {};  ///< first tokens that were written, the most frequent first
  AnswerTimes times = {};

  std::string name(int64_t usual_budget) const;  ///< "head", or "head 16" of another budget
  double mean_exact_match() const;
  double mean_f1() const;
  double nats_per_token() const;  ///< all nats over all tokens
  double bits_per_byte(std::span<const Prompt> prompts) const;
  /// Share of prompts whose first content token is among the `most` likeliest.
  double first_accuracy(int32_t most = 1) const;
  /// By place in the answer: of the prompts that have a token there, for how many it is the likeliest.
  std::vector<double> accuracy_by_place() const;
  int64_t distinct_answers() const;  ///< normalised
};

struct MeasuredPrompts {
  std::span<const Prompt> prompts;
  std::span<const float> wires;
};
SystemScores measure_system(TrainedLatent& model, const MeasuredPrompts& measured, System system,
                            size_t receiver, int64_t budget, const Writing& writing = {});
/// Wires of prompts, cut as the encoder needs it; `cut` counts those.
std::vector<float> encode_all(TrainedLatent& model, std::span<const Prompt> prompts, int64_t* cut);
/// Wires as they come out of `bits` a number. DataError names what cannot be quantized.
std::vector<float> through_bits(const TrainedLatent& model, std::span<const float> wires,
                                int64_t bits, int64_t group);

/// Answers chosen by all receivers together.
struct JointScores {
  double exact_match = 0;
  double f1 = 0;
  double agreement =
      0;  ///< share of prompts whose normalised answers are the same for all receivers
  double oracle_f1 = 0;  ///< of the best answer of each prompt
  double oracle_exact_match = 0;
};
/// Of the receivers' answers, by receiver and prompt, the one of which the receivers' log-likelihoods have the largest sum,
/// the terminator included. Each receiver reads a prompt once for all of them.
JointScores rescore(TrainedLatent& model, const MeasuredPrompts& measured,
                    std::span<const SystemScores> latents);

}  // namespace fullbore::latentwire
