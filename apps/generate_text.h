#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/train/sampling.h"

namespace fullbore {

struct GenerateOptions {
  std::string prompt;        ///< "" starts a line of its own
  int64_t characters = 500;  ///< most tokens of each text
  SamplingOptions sampling = {.temperature = 0.8};
  std::vector<std::string> stops;  ///< a text ends before the first of them
  uint64_t seed = 1;
  int64_t samples = 1;
};

/// Continues the prompt with the model of a run or checkpoint, on stdout. A single text is shown as
/// it is made; of several, the first one is, and the others follow, each under a line that tells its
/// number. What the model cannot see of a long prompt is told on stderr. UsageError for a prompt with
/// characters that the model does not know.
void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options);

}  // namespace fullbore
