#pragma once
#include "fullbore/backend/cpu/recurrence/pair_weights.h"

namespace fullbore::cpu {

/// The cotangents of one chunk. What a token reads of another is W = weights, with cotangents D =
/// dy v^T where W may not be 0; then dv = W^T dy, and the cotangents of r and k are products of D, with
/// decays, and k and r. Those of the log-decays are sums of r dr and k dk: see ops/recurrence_gradient.
class ChunkGradient {
 public:
  ChunkGradient(const ChunkLoops& loops, Scratch& scratch);

  void begin_group(const void* r, const void* k, const uint8_t* resets, int64_t group,
                   const ChunkPlace& place);
  struct Head {
    Rows v, dy;
    Rows state;      ///< before the chunk, [K,V]
    Rows cotangent;  ///< of the state behind it
    const float* u;  ///< the bonus, or null
    const void* g;   ///< the operand
    int64_t head;
  };
  void of_head(const Head& head);
  void end_group();

  MutableRows dr, dk;  ///< after end_group: sums over the heads
  MutableRows dv, dg;  ///< after of_head
  float* du;           ///< likewise

 private:
  void pairs(const Head& head);
  /// Of decays of keys: D of one band to cotangents of its readers and, later, of its writers.
  void of_band_readers(int64_t band);
  void of_band_writers(int64_t band);
  void through_states(const Head& head);
  void of_bonus(const Head& head);
  void sum_decays(const Head& head);
  void sum_one_decay(const Head& head);
  void limit(int64_t width);
  /// exp of the decays behind each token, and of the chunk; 0 where a reset lies between.
  void prepare_borders();

  const ChunkLoops& loops_;
  const RecurrenceShape& shape_;
  bool scalar_;
  ChunkPlace place_;
  DecaySums sums_;
  Segments segments_;
  PairWeights pairs_;
  MutableRows slopes_;             ///< D, [chunk, chunk]
  MutableRows slopes_sum_;         ///< of one decay: D with decays, summed over heads
  MutableRows values_transposed_;  ///< v, [V, chunk]
  MutableRows state_transposed_;   ///< of the state or its cotangent, [V, K]
  MutableRows of_r_, of_k_;        ///< cotangents by pairs; of k without the bands' factors
  MutableRows far_k_;              ///< of k: by pairs of far bands, then by all
  MutableRows right_;              ///< k times decays up to the border of the band that is at work
  MutableRows reading_;            ///< factors of r; of one decay a row of tokens
  MutableRows outside_;            ///< cotangents by the states
  MutableRows writing_;            ///< factors of k; of one decay a row of tokens
  MutableRows written_, read_, from_;  ///< terms of the decays' sums
  MutableRows scaled_;
  float *passing_, *bonus_slopes_, *row_, *through_, *zeros_, *ones_;
};

}  // namespace fullbore::cpu
