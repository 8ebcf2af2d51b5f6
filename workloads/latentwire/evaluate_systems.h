#pragma once
#include <cstdint>
#include <functional>
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
};
inline constexpr System kSystems[] = {System::text, System::latent, System::head,
                                      System::question_first};
const char* system_name(System system);

/// Of the source's tokens at most `budget`, BOS and anchor beside them, as a receiver reads it.
std::vector<int32_t> cut_prompt(const Receiver& receiver, const Prompt& prompt, System system,
                                int64_t budget);

/// What came of a system, prompt by prompt.
struct SystemScores {
  std::vector<std::string> answers;
  std::vector<double> exact_match, f1;
  std::vector<double> nats;         ///< of the first answer that is right, all tokens
  std::vector<double> tokens;       ///< of it
  std::vector<double> first_right;  ///< 1 where its first token is the likeliest

  double mean_exact_match() const;
  double mean_f1() const;
  double nats_per_token() const;  ///< all nats over all tokens
  double bits_per_byte(std::span<const Prompt> prompts) const;
  double first_accuracy() const;
};

using EvaluationProgress = std::function<void(const std::string& what)>;

SystemScores measure_system(TrainedLatent& model, std::span<const Prompt> prompts, System system,
                            size_t receiver, std::span<const float> wires, int64_t budget);
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
/// the terminator included.
JointScores rescore(TrainedLatent& model, std::span<const Prompt> prompts,
                    std::span<const SystemScores> latents, std::span<const float> wires);

}  // namespace fullbore::latentwire
