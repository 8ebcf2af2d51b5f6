#pragma once
#include <cstdint>
#include <string>

namespace fullbore {

struct GenerateOptions {
  std::string prompt;  ///< "" starts a line of its own
  int64_t characters = 500;
  double temperature = 0.8;
  int64_t top_k = 0;  ///< 0: all
  uint64_t seed = 1;
};

/// Continues the prompt with the model of a run or checkpoint, on stdout as it is made.
void generate_text(const std::string& run_or_checkpoint, const GenerateOptions& options);

}  // namespace fullbore
