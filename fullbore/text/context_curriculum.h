#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Batches [first_step, first_step of the next) have sequences of `length` tokens.
struct ContextStage {
  uint64_t first_step = 0;
  int64_t length = 0;
};

/// data.context_curriculum, and model.context behind its last until_step; one stage where it is empty. UsageError:
/// an item that is no "until_step=N length=N", steps that do not ascend, lengths beyond model.context or, of windows,
/// that do not divide it.
std::vector<ContextStage> context_stages(const Config& config);

}  // namespace fullbore
