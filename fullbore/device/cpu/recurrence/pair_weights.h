#pragma once
#include <algorithm>

#include "fullbore/device/cpu/recurrence/chunk_loops.h"

namespace fullbore::cpu {

/// The rows from one on.
inline Rows from_row(Rows rows, int64_t first) { return {rows.row(first), rows.stride}; }
inline MutableRows from_row(MutableRows rows, int64_t first) {
  return {rows.row(first), rows.stride};
}

/// Tokens [first, end) of a chunk.
struct Span {
  int64_t first = 0;
  int64_t end = 0;

  int64_t count() const { return end - first; }
};

/// Tiles of readers: a matmul of pairs of tokens is taken tile by tile, up to the tile's end.
inline int64_t tile_count(int64_t tokens) { return divide_up(tokens, kSubChunk); }
inline Span tile_of(int64_t index, int64_t tokens) {
  return {index * kSubChunk, std::min(tokens, (index + 1) * kSubChunk)};
}

/// Zeros where a reader of the tile does not see a writer, up to whole vectors behind the tile's end.
void hide_unseen(const ChunkLoops& loops, const Segments& segments, const Span& tile,
                 MutableRows pairs);

/// Decays that differ along a head's keys, split so that what tokens read of one another is a matmul:
/// with a the sum of decays before a block of tiles, exp(read_i - after_j) = exp(read_i - a)
/// exp(a - after_j) for a reader i of the block and writers j up to it. For writers before the block both
/// exponents are <= 0. Within the block the second one is not, but below kNear, for which f32 has room: a
/// block has as many tiles as that allows, of slow decays the whole chunk. In a far block, one tile of
/// stronger decays, pairs of tokens are gone through one by one.
class KeyBlocks {
 public:
  /// e^40 times e^-40 loses nothing, and times operands below 10^15 overflows nowhere.
  static constexpr float kNear = 40;

  /// keep_decays: are `reading` and `writing` asked for?
  KeyBlocks(const ChunkLoops& loops, bool keep_decays, Scratch& scratch);
  /// left = r times `reading`, right = k times `writing`
  void prepare(const ChunkLoops& loops, const DecaySums& sums, int64_t tokens, Rows r, Rows k,
               MutableRows left, MutableRows right);

  int64_t count() const { return count_; }
  const Span& operator[](int64_t index) const { return blocks_[index]; }
  /// exp(read_i - a) of each token, a of its own block.
  Rows reading() const { return reading_; }
  /// exp(a - after_j) of each token, a of its own block or, if that is far, of the next one.
  Rows writing() const { return writing_; }
  /// exp(a), of what the state before the chunk is.
  const float* state(int64_t block) const { return state_.row(block); }
  /// Of what the state behind the chunk gets of a writer: exp(.) from where `writing` reaches to the end.
  const float* rest(int64_t block) const { return rest_.row(block); }
  bool far(int64_t block) const { return far_[block]; }
  /// Writers that a matmul with readers of the block reaches.
  int64_t reached(int64_t block) const {
    return far(block) ? blocks_[block].first : blocks_[block].end;
  }
  /// Of a block > 0, or of the chunk's end behind the last one: exp(a - a of the block before), by which
  /// tokens [0, moved) go on to it.
  const float* step(int64_t block) const { return step_.row(block); }
  int64_t moved(int64_t block) const { return reached(block - 1); }

 private:
  MutableRows reading_, writing_, state_, rest_, step_;
  float* zeros_;
  bool* far_;
  Span* blocks_;
  int64_t count_ = 0;
};

/// What each token of a chunk reads of each, [chunk, chunk]; 0 behind the reader up to its tile's end.
template <class P>
class PairWeights {
 public:
  /// keep_decays: will the blocks be asked for theirs?
  PairWeights(const ChunkLoops& loops, const GemmOperands<P>& gemm, bool keep_decays,
              Scratch& scratch);

  struct Keys {
    const void *r, *k;
    int64_t group;
    bool as_numbers;  ///< are `r` and `k` read, whatever the weights need?
  };
  /// Of the keys of a group: r and k, and what their heads share.
  void read_keys(const Keys& keys, const Segments& segments, const ChunkPlace& place);
  /// Of one head's decays. Then the weights are made. u: the bonus or null.
  void begin(const DecaySums& sums, const ChunkPlace& place);
  void make(const DecaySums& sums, const Segments& segments, const float* u,
            const ChunkPlace& place);
  /// Of decays of keys, those of one block: all blocks one by one, in order. `right` reaches up to the
  /// block's border then and, once all are made, by `finish_blocks` up to the chunk's end.
  void make_block(const DecaySums& sums, const Segments& segments, const float* u, int64_t block,
                  const ChunkPlace& place);
  void finish_blocks();
  /// The bonus, of weights that are made.
  void add_bonus(const float* u, const Span& tokens);
  /// Of one decay for all keys: what is left, where each token reads, of the state before the chunk; 0
  /// behind a reset.
  void state_decays(const DecaySums& sums, const Segments& segments, const ChunkPlace& place,
                    float* to) const;
  /// to = what each token reads of the state before the chunk. decays: room for a row of tokens.
  void read_state(const DecaySums& sums, const Segments& segments, const ChunkPlace& place,
                  const SourceMatrix& state, float* decays, MutableRows to);

  Rows r, k;
  SourceMatrix r_operand, k_operand;
  MutableRows weights;
  MutableRows scores;       ///< r k^T without decays where one is seen, of one decay for all keys
  MutableRows left, right;  ///< r and k times the blocks' decays, of decays of keys
  KeyBlocks blocks;

 private:
  /// What is left of the state before the chunk where each token reads, times r.
  MutableRows readers(const Segments& segments, const ChunkPlace& place);

  const ChunkLoops& loops_;
  const GemmOperands<P>& gemm_;
  const RecurrenceShape& shape_;
  MutableRows r_copy_, k_copy_, readers_;
  OperandRoom<P> left_room_, right_room_;
  float* zeros_;
};

extern template class PairWeights<float>;
extern template class PairWeights<VnniPair>;

}  // namespace fullbore::cpu
