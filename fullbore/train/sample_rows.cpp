#include "fullbore/train/sample_rows.h"

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

// [R,V] at [R] -> [R]
Tensor at(Tensor x, Tensor ids) { return squeeze(take_along_axis(x, expand_dims(ids, 1), 1), 1); }

Tensor last_column(Tensor x) { return squeeze(slice(x, 1, x.dim(1) - 1, x.dim(1)), 1); }

// As training makes it: of equal logits the same bits.
Tensor raw_of(Tensor logits, Tensor tokens) { return -cross_entropy(logits, tokens); }

/// bool [R,V]: is the token among those that top_k and top_p leave?
Tensor kept_tokens(Tensor scaled, const SampleRowsInputs& inputs) {
  const int64_t rows = scaled.dim(0), tokens = scaled.dim(1);
  const auto [descending, ids] = sort(scaled, true);
  const Tensor rank = iota(scaled.builder(), {DType::i64, {1, tokens}}, 1);
  const Tensor most = select(greater(inputs.top_k, 0.0), inputs.top_k, static_cast<double>(tokens));
  const Tensor weights = select(less(rank, most), exp(descending), 0.0);
  // Kept are those before which there is less than the share: the first of them in any case.
  const Tensor before = cumsum(weights, 1, true);
  const Tensor wanted = reduce_sum(weights, {1}, true) * inputs.top_p;
  const Tensor fits =
      logical_and(less(rank, most), logical_or(less(before, wanted), equal(rank, 0.0)));
  const Tensor last = reduce_sum(cast(fits, DType::i64), {1}) - 1.0;
  const Tensor least = expand_dims(at(descending, last), 1);
  const Tensor least_id = expand_dims(at(ids, last), 1);
  const Tensor id = iota(scaled.builder(), {DType::i32, {rows, tokens}}, 1);
  return logical_or(greater(scaled, least),
                    logical_and(equal(scaled, least), less_equal(id, least_id)));
}

}  // namespace

SampledRows sample_rows(SamplingKind kind, const SampleRowsInputs& inputs) {
  SampledRows drawn;
  if (kind == SamplingKind::greedy) {
    drawn.tokens = argmax(inputs.logits, 1);
    drawn.raw = raw_of(inputs.logits, drawn.tokens);
    drawn.sampled = zeros_like(drawn.raw);
    return drawn;
  }
  const Tensor largest = reduce_max(inputs.logits, {1}, true);
  const Tensor scaled = (inputs.logits - largest) / inputs.temperature;
  Tensor weights = exp(scaled);
  if (kind == SamplingKind::kept) weights = select(kept_tokens(scaled, inputs), weights, 0.0);
  const Tensor sums = cumsum(weights, 1);
  const Tensor total = last_column(sums);
  const Tensor below = less_equal(sums, expand_dims(inputs.uniform * total, 1));
  // What is not a number is below nothing, and what has no sum is all below: the raw one tells.
  drawn.tokens = minimum(reduce_sum(cast(below, DType::i32), {1}),
                         static_cast<double>(inputs.logits.dim(1) - 1));
  drawn.raw = raw_of(inputs.logits, drawn.tokens);
  drawn.sampled = at(scaled, drawn.tokens) - log(total);
  return drawn;
}

Tensor draw_uniforms(Tensor key, Tensor counter_low, Tensor counter_high) {
  // The upper 24 bits of word 0, which is the lower half of what the op gives.
  const Tensor bits = bit_and(shift_right(philox(key, counter_low, counter_high), 8.0), 0xffffff);
  return cast(bits, DType::f32) * 0x1p-24;
}

float draw_uniform(uint64_t key, uint32_t step, uint32_t prompt, uint32_t sample, uint32_t token) {
  const auto words = philox4x32({step, prompt, sample, token},
                                {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  return static_cast<float>(words[0] >> 8) * 0x1p-24F;
}

}  // namespace fullbore
