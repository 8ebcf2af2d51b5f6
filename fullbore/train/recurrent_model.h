#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/train/generator.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

/// Models that read sequences a segment at a time, and how what they remember goes from one step to the next. Here
/// such a model becomes what the trainer and the generator know: a loss function and a decode function, whose State
/// has entries of role `recurrent`.

/// A tensor of what a model remembers.
struct RecurrentTensor {
  std::string name;
  TensorType type;  ///< [B,...] floating: a row for each sequence
};

struct SegmentLoss {
  Loss loss;
  std::vector<Tensor> states;  ///< behind the segment
};
struct SegmentLogits {
  Tensor logits;               ///< [B,V] of what follows the segment
  std::vector<Tensor> states;  ///< behind the segment
};

/// A model over one segment of B sequences.
struct RecurrentModel {
  /// What it remembers, in the order in which `states` come and go. Zeros are a sequence that begins.
  std::function<std::vector<RecurrentTensor>(int64_t sequences)> states;
  /// `batch`: the tensors of a batch but the resets, [B,T]. `states`: none: all sequences begin here.
  std::function<SegmentLoss(Trace& trace, std::span<const Tensor> batch,
                            std::span<const Tensor> states)>
      loss;
  /// tokens i32 [B,T], T at least 1.
  std::function<SegmentLogits(Trace& trace, Tensor tokens, std::span<const Tensor> states)> logits;
};

/// What a segment is begun with in training.
enum class InitialState : uint8_t {
  zero,     ///< nothing: every segment is a sequence of its own
  carry,    ///< what the segment before it on the same sequence left behind
  noise,    ///< normal draws, of each tensor as large as what the last batch left behind
  shuffled  ///< what the last batch's segment on another sequence, drawn at random, left behind
};

/// The name as configurations have it, "carry-k" among them; UsageError for another one.
InitialState initial_state_mode(const std::string& name);

struct TbpttOptions {
  InitialState initial = InitialState::zero;
  int64_t segments =
      1;  ///< of each sequence in a batch; gradients flow through the borders between them
  double noise = 1;  ///< its root mean square, as a multiple of what was left behind
  /// States that sequences begin with are parameters `initial.<name>`, of one sequence's type, zeros at first.
  bool trainable = false;
};

/// The model's loss on batches of sequences (data/token_sequences.h): fields [B, segments T], the last one the resets
/// [B, segments], true where a segment's sequence begins anew.
///
/// In training, what is behind the last segment becomes State `streams.<name>`, saved and resumed like all State;
/// no gradient flows from one step to the one before. A step that is skipped leaves it as it was. In evaluation
/// sequences begin where a batch says so and are carried, whatever `initial` is, but for zero. Sources: truncated
/// gradients Williams, Peng 1990, doi:10.1162/neco.1990.2.4.490; noise and shuffled states Buitrago, Gu 2025,
/// arXiv:2507.02782, section 4.
LossFunction tbptt_loss(RecurrentModel model, const TbpttOptions& options);

/// The model as Generator knows it, where GeneratorSizes::context is 0: State `generated.<name>`, and what sequences
/// begin with if that is `trainable`.
DecodeFunction recurrent_decode(RecurrentModel model, bool trainable = false);

}  // namespace fullbore
