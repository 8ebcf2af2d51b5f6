#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/train/sampling.h"

namespace fullbore {

struct TrainedModel;
class Tokenizer;

struct GenerateOptions {
  std::string prompt;  ///< "" starts a line of its own
  /// Several, to be continued together, each as it would be alone; with them no `prompt`, samples or states.
  std::vector<std::string> prompts = {};
  int64_t characters = 500;  ///< most tokens of each text
  SamplingOptions sampling = {.temperature = 0.8};
  std::vector<std::string> stops;  ///< a text ends before the first of them
  uint64_t seed = 1;
  int64_t samples = 1;
  /// Files of what a recurrent model remembers (train/sequence_states.h): to go on from, and to be written in the end;
  /// "": none. Texts that go on keep their own draws.
  std::string state_in;
  std::string state_out;
  bool tells = true;                        ///< what is ignored of the model's configuration
  std::string frozen_from = {};             ///< LoadOptions
  std::vector<std::string> overrides = {};  ///< LoadOptions
};

/// Continues the prompt with the model of a run or checkpoint, on stdout. A single text is shown as
/// it is made; of several, the first one is, and the others follow, each under a line that tells its
/// number; those of several prompts each behind its own; texts that go on from a file show what is new. What the model cannot see of a long prompt is told on stderr. UsageError for a prompt with
/// characters that the model does not know, and for files of states where it has a context instead; DataError for
/// files that cannot be read, are of another model or of another number of texts.
void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options);

/// The prompt's tokens; an empty prompt becomes the end of a document before the text, or of a line, or the first token
/// of the vocabulary where it has no lines. UsageError: a character that the model does not know.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt);
/// Continues one prompt for options.samples texts, or each of several, by options.characters tokens at most each: over a
/// paged cache where the model, loaded for as many, has one. `emit` is handed each token and says whether its text goes
/// on.
void continue_texts(TrainedModel& model, const std::vector<std::vector<int32_t>>& prompts,
                    const GenerateOptions& options,
                    const std::function<bool(size_t text, int32_t token)>& emit);

}  // namespace fullbore
