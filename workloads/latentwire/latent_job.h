#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "workloads/latentwire/prefix_adapter.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/prompt_encoder.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// A configuration of model.name=latentwire as its parts want it.

/// text: open_text_encoder(); it outlives the sizes.
EncoderSizes encoder_sizes(const Config& config, size_t receivers, const TextEncoder* text);
SlotSplit slot_split(const Config& config, size_t receivers);
/// Of optimiser step `step`, and of validation, which has no text steps.
PromptStep prompt_step(const Config& config, int64_t step);
PromptStep validation_step(const Config& config);
/// Are there steps with losses on the text (TextSteps)?
bool has_text_steps(const Config& config);
/// Do batches hold the text too, for a teacher or for gists?
bool reads_text(const Config& config);

/// Of a wire [B,M,C] what a receiver reads: adapted and calibrated vectors [B,M',d].
struct ReceiverPrefix {
  Tensor vectors;
  Tensor raw;                           ///< before calibration
  Tensor scale;                         ///< f32 []: the adapter's
  nn::DecoderAdditions additions = {};  ///< conditioning.*
  bool is_in_row = true;                ///< are the vectors read before the anchor?
  Tensor gists = {};                    ///< [B,conditioning.gist_tokens,d], with any
  std::vector<Carried> carried = {};    ///< training_statistics.h, in training with train_stats

  Tensor in_row() const { return is_in_row ? vectors : Tensor(); }
};
ReceiverPrefix receiver_prefix(Trace& trace, const Config& config, const Receiver& receiver,
                               size_t number, size_t receivers, Tensor wire);

/// On the fields of PromptBatches. Of each receiver, averaged over receivers:
///
///   all + first_weight first + early_weight early + distillation_weight kd + state_weight states
///       + entropy_weight -H + statistics_weight statistics + slot_weight slots + gist_weight gists
///
/// where in a text step (TextSteps) kd and states are left out, the sum is taken latent_scale times, and
///
///   align_weight align + text_step_weight text
///
/// is added: align is the squared distance of the first align_tokens vectors from the answer's embeddings, a mean over each
/// row's and over rows; text is the loss on the text, which conditioning.rank alone has a gradient of: without it there is
/// no such pass, and Loss::dead says so;
///
/// and for each adapter scale_weight (s - 1)^2 + rms_weight (rms - rms of the embeddings)^2. Metrics, each by receiver:
/// NAME_all, _first, _early, _kd, _states, _first_accuracy, _first_entropy, _slots, _gists, _scale, _rms, _rms_calibrated, and _padding, the
/// share of the answers' places that hold no token; with text steps _align, _text and, of the step, text_step and
/// latent_scale.
LossFunction latent_loss(const Config& config,
                         std::shared_ptr<const std::vector<Receiver>> receivers,
                         std::shared_ptr<const TextEncoder> text = nullptr);

}  // namespace fullbore::latentwire
