#include "fullbore/text/completion_scores.h"

namespace fullbore {

TokenScores completion_scores(Trace& trace, const HiddenFunction& hidden,
                              const CompletionInputs& inputs, int64_t classes) {
  const int64_t batch = inputs.tokens.dim(0), length = inputs.tokens.dim(1);
  const int64_t completion = inputs.targets.dim(1);
  const LanguageModelHead head = hidden(trace, inputs.tokens);
  GraphBuilder& builder = trace.builder();
  const TensorType type{DType::i64, {batch, completion}};
  // What a token follows from stands at the place before it. Places beyond the row are of no target.
  const Tensor place =
      minimum(iota(builder, type, 1) + expand_dims(cast(inputs.first, DType::i64) - 1.0, 1),
              static_cast<double>(length - 1));
  const Tensor row = iota(builder, type, 0) * static_cast<double>(length);
  const Tensor flat = reshape(head.hidden, {batch * length, head.hidden.dim(2)});
  return linear_log_probability(gather(flat, row + place), head.weight, inputs.targets,
                                {.classes = classes});
}

}  // namespace fullbore
