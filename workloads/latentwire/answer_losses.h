#pragma once
#include <cstdint>
#include <vector>

#include "workloads/latentwire/answer_pass.h"
#include "workloads/latentwire/prefix_losses.h"

namespace fullbore::latentwire {

/// How the losses of answers are computed. The results are the same but for rounding.
struct AnswerPaths {
  /// All tokens are places of one pass over a row. Otherwise there is a pass for each loss, of the first K tokens one for each
  /// token, and again one each for what a teacher is compared with: slow, to be compared with.
  bool one_pass = true;
  /// The head is applied to the places that predict the answer, in tiles of rows whose logits exist at a time. Otherwise
  /// the logits of every place of a row exist.
  bool head_rows = true;
};

/// A batch of rows with answers.
struct AnswerBatch {
  const nn::DecoderConfig& decoder;
  const RowLayout& layout;
  Tensor prefix = {};  ///< as prefix_states() takes it
  const nn::DecoderAdditions& additions;
  Tensor answer;             ///< i32 [B,T], -1 behind an answer
  Tensor all, first, early;  ///< AnswerFactors, f32 [B,T]
  int64_t most_early = 1;    ///< places of `early` that may have a factor
  bool has_teacher = false;  ///< are states and logits of those places wanted?
  std::vector<int64_t> layers = {};
};

/// What the losses of answers weigh.
struct AnswerWeights {
  Tensor first;            ///< f32 []
  bool autoscale = false;  ///< times autoscaled()
  double early = 0;
};

struct AnswerLosses {
  Tensor weighted;  ///< f32 []: all + first_weight first + early_weight early, for the gradient
  Tensor all, first, early;  ///< f32 [] each; a gradient may be missing
  /// Of the first content token of each row: logits [B,V], with a gradient; the token i32 [B]; its factor f32 [B].
  Tensor first_logits, first_token, first_factor;
  /// With a teacher, of the first min(T, most_early) places: states of the last and of chosen layers [B,E,d], logits [B,E,V].
  nn::DecoderStates states = {};
  Tensor logits = {};
};
AnswerLosses answer_losses(Trace& trace, const AnswerBatch& rows, const AnswerWeights& weights,
                           const AnswerPaths& paths);

}  // namespace fullbore::latentwire
