#include "fullbore/text/completion_scores.h"

namespace fullbore {

TokenScores completion_scores(const LanguageModelHead& head, const CompletionInputs& inputs,
                              int64_t classes) {
  const int64_t rows = inputs.tokens.dim(0), length = inputs.tokens.dim(1);
  const int64_t texts = rows * inputs.targets.dim(1), completion = inputs.targets.dim(2);
  GraphBuilder& builder = inputs.tokens.builder();
  const Tensor first =
      iota(builder, {DType::i64, inputs.before.shape()}, 0) * static_cast<double>(length);
  const Tensor places = reshape(first + cast(inputs.before, DType::i64), {texts, completion});
  const Tensor flat = reshape(head.hidden, {rows * length, head.hidden.dim(2)});
  return linear_log_probability(gather(flat, places), head.weight,
                                reshape(inputs.targets, {texts, completion}), {.classes = classes});
}

}  // namespace fullbore
