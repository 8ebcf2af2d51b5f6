#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// What of SamplingOptions a graph is made for; the numbers come at run time.
enum class SamplingKind : uint8_t {
  greedy,  ///< temperature 0
  full,    ///< all tokens, at any temperature
  kept     ///< top_k, top_p
};

/// Of a draw of R rows.
struct SampleRowsInputs {
  Tensor logits;       ///< f32 [R,V]
  Tensor uniform;      ///< f32 [R], in [0, 1)
  Tensor temperature;  ///< f32 [], above 0
  Tensor top_k;        ///< i64 [], of SamplingKind::kept: 0: all
  Tensor top_p;        ///< f32 [], of SamplingKind::kept
};
struct SampledRows {
  Tensor tokens;  ///< i32 [R]
  /// f32 [R]: -cross_entropy() of the logits, to the bit; not finite where no probability can be made of them.
  Tensor raw;
  Tensor sampled;  ///< f32 [R]
};

/// sample_token() (train/sampling.h) of each row, in f32: the same tokens but where rounding decides.
SampledRows sample_rows(SamplingKind kind, const SampleRowsInputs& inputs);

/// f32 [R] in [0, 1), 24 bits: word 0 of Philox4x32-10 with the key (i64 []) and the counters, i64 each, broadcast.
/// draw_uniform() is the same of one.
Tensor draw_uniforms(Tensor key, Tensor counter_low, Tensor counter_high);
/// Of the counter (step, prompt, sample, token).
float draw_uniform(uint64_t key, uint32_t step, uint32_t prompt, uint32_t sample, uint32_t token);

}  // namespace fullbore
