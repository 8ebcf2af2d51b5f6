#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/runtime/compile.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

struct GptSteps {
  std::vector<double> losses;
  std::vector<double> norms;  ///< of the gradients
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;
};

/// Training steps of a GPT of two layers on batches of random tokens, in which rows have unequally many
/// targets: the batch in such parts, compiled with these options. Always the same batches.
GptSteps gpt_steps(int steps, const Microbatches& parts, const CompileOptions& options);

}  // namespace fullbore
