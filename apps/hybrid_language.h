#pragma once
#include <string>

#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "models/hybrid/hybrid_model.h"

namespace fullbore {

/// model.name=hybrid as the trainer and the commands know it.

/// Sizes of the model that `tokens` distinct tokens need. UsageError if model.vocabulary is less.
HybridConfig hybrid_config(const Config& config, int64_t tokens);
/// All that decides what its parameters mean.
std::string hybrid_identity(const Config& config);
/// Its loss on batches of data.batching (language_batches.h); every row begins a stream. With log.diagnostics
/// evaluations have the metrics of models/hybrid/diagnostics.h.
LossFunction hybrid_loss_function(const Config& config, const HybridConfig& model);

}  // namespace fullbore
