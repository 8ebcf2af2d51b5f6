#pragma once
#include <cstdint>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

/// Mean cross-entropy of next-token prediction, f32 [], in nats.
struct LanguageModelLoss {
  Tensor mean;         ///< over the targets that count; 0 where there is none
  Tensor predictions;  ///< f32 [], how many those are, or the sum of their weights
};
/// Are output head and loss one op, of which the logits of some rows exist at a time (ops.h,
/// linear_cross_entropy)?
enum class FusedHead : uint8_t {
  automatic,  ///< where the logits are more than four such blocks of rows
  on,
  off
};
struct LanguageModelLossOptions {
  CrossEntropyOptions cross_entropy = {};
  Tensor weights = {};  ///< f32 [B,T], not negative: factors of the losses; none: all 1
  FusedHead fused_head = FusedHead::automatic;
};

/// What the output head reads and the head itself, whose matmul is the logits.
struct LanguageModelHead {
  Tensor hidden;  ///< [B,T,C]
  Tensor weight;  ///< [V,C]
  /// The module that the matmul and what comes of it belong to; empty: the one they are traced in.
  const char* module = "";
};
/// -> [B,T,V], or [B,V] of hidden [B,C].
Tensor language_model_logits(Trace& trace, const LanguageModelHead& head);
/// The loss of the head's logits by targets i32 [B,T]; others than [0, V), such as the -1 of padding, count for
/// nothing.
LanguageModelLoss language_model_loss(Trace& trace, const LanguageModelHead& head, Tensor targets,
                                      const LanguageModelLossOptions& options);

}  // namespace fullbore
