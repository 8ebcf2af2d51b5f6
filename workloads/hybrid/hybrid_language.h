#pragma once
#include <string>

#include "fullbore/text/text_model.h"
#include "fullbore/train/recurrent_model.h"
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {

/// model.name=hybrid as the trainer and the commands know it.

/// Sizes of the model that `tokens` distinct tokens need. UsageError if model.vocabulary is less.
HybridConfig hybrid_config(const Config& config, int64_t tokens);
/// All that decides what its parameters mean.
std::string hybrid_identity(const Config& config);
/// How its sequences begin, by data.initial_state, data.segments, data.state_noise and model.learned_state.
TbpttOptions tbptt_options(const Config& config);
/// The model as the trainer and the generator know what reads sequences. Batches: inputs and targets, i32 [B,T].
RecurrentModel hybrid_recurrence(const Config& config, const HybridConfig& model);
/// Its loss on batches of data.batching (fullbore/text/text_batches.h); every row begins a sequence, save with data.batching=sequences. With
/// log.diagnostics evaluations have the metrics of workloads/hybrid/diagnostics.h.
LossFunction hybrid_loss_function(const Config& config, const HybridConfig& model);

/// model.name=hybrid as everything that handles texts knows it.
TextModel hybrid_text_model();

}  // namespace fullbore
