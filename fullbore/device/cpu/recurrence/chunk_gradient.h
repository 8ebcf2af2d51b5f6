#pragma once
#include "fullbore/device/cpu/recurrence/pair_weights.h"

namespace fullbore::cpu {

/// The cotangents of one chunk. What a token reads of another is W = weights, with cotangents D =
/// dy v^T where W may not be 0; then dv = W^T dy, and the cotangents of r and k are matmuls of D, with
/// decays, and k and r. Those of the log-decays are sums of r dr and k dk: see ops/recurrence_gradient.
template <class P>
class ChunkGradient {
 public:
  ChunkGradient(const ChunkLoops& loops, const GemmOperands<P>& gemm, Scratch& scratch);

  struct Group {
    const void *r, *k;
    void *dr, *dk;  ///< results, sums over the heads: written after end_group
    const uint8_t* resets;
    int64_t group;
  };
  void begin_group(const Group& group, const ChunkPlace& place);
  struct Head {
    SourceMatrix v, dy;
    Rows state;      ///< before the chunk, [K,V]; no data where it is 0
    Rows cotangent;  ///< of the state behind it; no data where it is 0
    const float* u;  ///< the bonus, or null
    const void* g;   ///< the operand
    void *dv, *dg;   ///< results
    int64_t head;
  };
  void of_head(const Head& head);
  void end_group();

  float* du;  ///< after of_head

 private:
  void pairs(const Head& head);
  /// Of decays of keys: D of one block to cotangents of its readers and, later, of its writers.
  void of_block_readers(int64_t block);
  void of_block_writers(int64_t block);
  /// Of one decay: weights, D of one tile with decays, and the terms of the decay's sum.
  void of_tile_pairs(const Span& tile);
  /// to = or += pairs^T x of these readers, x from the first of them on, where pairs are 0 above the diagonal
  void by_writers(Rows pairs, const Span& readers, GemmOperand<P> x, int64_t columns,
                  MutableRows to, bool accumulate);
  void through_states(const Head& head);
  void of_one_decay();
  void of_key_decays(const Head& head);
  void of_bonus(const Head& head);
  void sum_one_decay();
  /// exp of the decays of the chunk and, of one decay, of those behind each token; 0 where a reset lies
  /// between.
  void prepare_borders();
  /// Zeros in rows that do not read the state before the chunk, or write the one behind it.
  void hide_readers(MutableRows rows) const;
  void hide_writers(MutableRows rows) const;

  const ChunkLoops& loops_;
  const GemmOperands<P>& gemm_;
  const RecurrenceShape& shape_;
  bool scalar_;
  bool carried_,
      wanted_;  ///< is the state before the chunk, the cotangent of the one behind it, not 0?
  Group group_;
  ChunkPlace place_;
  DecaySums sums_;
  Segments segments_;
  PairWeights<P> pairs_;
  MutableRows dr_, dk_, dv_, dg_;  ///< where they go, or copies:
  MutableRows dr_copy_, dk_copy_, dv_copy_, dg_copy_;
  MutableRows slopes_;                 ///< D, [chunk, chunk]
  MutableRows slopes_sum_;             ///< of one decay: D with decays, summed over heads
  MutableRows outside_r_, outside_k_;  ///< cotangents by the states, without decays
  MutableRows scaled_;
  MutableRows of_r_, of_k_;            ///< of decays of keys: by pairs, without the blocks' decays
  MutableRows far_r_, far_k_;          ///< by pairs within far blocks
  MutableRows written_, read_, from_;  ///< terms of the decays' sums
  OperandRoom<P> pairs_room_, values_room_, cotangents_room_, left_room_, right_room_;
  float *reading_, *writing_;  ///< of one decay: what r and k are multiplied by
  float *passing_, *bonus_slopes_, *row_, *through_, *behind_, *minus_, *zeros_, *ones_;
};

extern template class ChunkGradient<float>;
extern template class ChunkGradient<VnniPair>;

}  // namespace fullbore::cpu
