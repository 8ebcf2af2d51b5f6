#include "fullbore/device/cpu/recurrence/pair_weights.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

MutableRows take_rows(Scratch& scratch, int64_t rows, int64_t stride) {
  return {scratch.take<float>(rows * stride), stride};
}

}  // namespace

void hide_unseen(const ChunkLoops& loops, const Segments& segments, const Span& tile,
                 MutableRows pairs) {
  const bool own = loops.shape.inclusive;
  if (!segments.any()) {
    loops.rows.keep_seen(tile.count(), own, {pairs.row(tile.first) + tile.first, pairs.stride});
    return;
  }
  for (int64_t t = tile.first; t < tile.end; ++t) {
    float* row = pairs.row(t);
    std::fill(row, row + segments.first_of(t), 0.0F);
    std::fill(row + t + (own ? 1 : 0), row + round_up(tile.end, kRowStep), 0.0F);
  }
}

KeyBlocks::KeyBlocks(const ChunkLoops& loops, bool keep_decays, Scratch& scratch) {
  const int64_t chunk = loops.shape.chunk, stride = loops.key_stride();
  const int64_t count = loops.shape.scalar_decay() ? 0 : tile_count(chunk);
  const int64_t tokens = loops.shape.scalar_decay() ? 0 : chunk;
  if (keep_decays) {
    reading_ = take_rows(scratch, tokens, stride);
    writing_ = take_rows(scratch, tokens, stride);
  }
  state_ = take_rows(scratch, count, stride);
  rest_ = take_rows(scratch, count, stride);
  step_ = take_rows(scratch, count + 1, stride);
  zeros_ = scratch.take<float>(stride);
  far_ = scratch.take<bool>(count);
  blocks_ = scratch.take<Span>(count);
  if (zeros_) std::fill_n(zeros_, stride, 0.0F);
}

void KeyBlocks::prepare(const ChunkLoops& loops, const DecaySums& sums, int64_t tokens, Rows r,
                        Rows k, MutableRows left, MutableRows right) {
  const int64_t width = loops.key_stride();
  const RowUnit& rows = loops.rows;
  const Rows before = sums.before(), after = sums.after(), read = sums.read();
  const auto are_near = [&](int64_t first, int64_t end) {
    return rows.largest_difference(width, before.row(first), before.row(end)) <= kNear;
  };
  const auto tile_behind = [&](int64_t end) { return std::min(tokens, end + kSubChunk); };
  count_ = 0;
  for (Span block; block.end < tokens; ++count_) {
    const int64_t i = count_;
    block = {block.end, tile_behind(block.end)};
    far_[i] = !are_near(block.first, block.end);
    while (!far_[i] && block.end < tokens && are_near(block.first, tile_behind(block.end)))
      block.end = tile_behind(block.end);
    blocks_[i] = block;
    const float* border = before.row(block.first);
    const float* end = before.row(block.end);
    const float* anchor = far_[i] ? end : border;
    const auto of_block = [&](auto of_chunk) { return from_row(of_chunk, block.first); };
    if (reading_.data) {
      rows.block_decays({.tokens = block.count(),
                         .width = width,
                         .border = border,
                         .anchor = anchor,
                         .read = of_block(read),
                         .after = of_block(after),
                         .r = of_block(r),
                         .k = of_block(k),
                         .reading = of_block(reading_),
                         .writing = of_block(writing_),
                         .left = of_block(left),
                         .right = of_block(right)});
    } else {
      rows.decayed(block.count(), width, of_block(r), of_block(read), {border, 0}, of_block(left));
      rows.decayed(block.count(), width, of_block(k), {anchor, 0}, of_block(after),
                   of_block(right));
    }
    rows.exponentials(1, width, {border, 0}, {zeros_, 0}, {state_.row(i), 0});
    rows.exponentials(1, width, {sums.total(), 0}, {anchor, 0}, {rest_.row(i), 0});
    rows.exponentials(1, width, {end, 0}, {border, 0}, {step_.row(i + 1), 0});
  }
}

template <class P>
PairWeights<P>::PairWeights(const ChunkLoops& loops, const GemmOperands<P>& gemm, bool keep_decays,
                            Scratch& scratch)
    : blocks(loops, keep_decays, scratch),
      loops_(loops),
      gemm_(gemm),
      shape_(loops.shape),
      right_room_(scratch, std::max(shape_.chunk, shape_.keys),
                  std::max({shape_.chunk, shape_.keys, shape_.values})),
      zeros_(scratch.take<float>(loops.token_stride())) {
  const int64_t chunk = shape_.chunk, keys = loops.key_stride(), tokens = loops.token_stride();
  weights = take_rows(scratch, chunk, tokens);
  r_copy_ = take_rows(scratch, chunk, keys);
  k_copy_ = take_rows(scratch, chunk, keys);
  // Pairs of tokens that are far from each other are sums over whole vectors.
  for (const MutableRows& copy : {r_copy_, k_copy_})
    if (copy.data && keys > shape_.keys) std::fill_n(copy.data, chunk * keys, 0.0F);
  left_room_ = OperandRoom<P>(scratch, chunk, shape_.keys);
  if (zeros_) std::fill_n(zeros_, tokens, 0.0F);
  if (shape_.scalar_decay()) {
    scores = take_rows(scratch, chunk, tokens);
  } else {
    left = take_rows(scratch, chunk, keys);
    right = take_rows(scratch, chunk, keys);
    readers_ = take_rows(scratch, chunk, keys);
  }
}

template <class P>
void PairWeights<P>::read_keys(const Keys& keys, const Segments& segments,
                               const ChunkPlace& place) {
  const auto read = [&](const void* operand, MutableRows copy) {
    return loops_.read(operand, loops_.dtype, shape_.groups, keys.group, shape_.keys, place, copy);
  };
  const auto matrix = [&](const void* operand, Rows numbers) {
    if (!loops_.vnni) return matrix_of(numbers, place.tokens, shape_.keys);
    return loops_.operand(operand, shape_.groups, keys.group, shape_.keys, place, {});
  };
  if (!loops_.vnni || keys.as_numbers || !shape_.scalar_decay()) {
    r = read(keys.r, r_copy_);
    k = read(keys.k, k_copy_);
  }
  r_operand = matrix(keys.r, r);
  k_operand = matrix(keys.k, k);
  if (!shape_.scalar_decay()) return;
  const GemmOperand<P> readers = gemm_.by_rows(r_operand, left_room_);
  const GemmOperand<P> writers = gemm_.transposed(k_operand, right_room_);
  for (int64_t i = 0; i < tile_count(place.tokens); ++i) {
    const Span tile = tile_of(i, place.tokens);
    gemm_.multiply(tile.count(), tile.end, shape_.keys, readers.from_line(tile.first), writers,
                   from_row(scores, tile.first), false);
    hide_unseen(loops_, segments, tile, scores);
  }
}

template <class P>
void PairWeights<P>::begin(const DecaySums& sums, const ChunkPlace& place) {
  if (!shape_.scalar_decay()) blocks.prepare(loops_, sums, place.tokens, r, k, left, right);
}

template <class P>
void PairWeights<P>::make(const DecaySums& sums, const Segments& segments, const float* u,
                          const ChunkPlace& place) {
  if (!shape_.scalar_decay()) {
    for (int64_t i = 0; i < blocks.count(); ++i) make_block(sums, segments, u, i, place);
    return;
  }
  for (int64_t i = 0; i < tile_count(place.tokens); ++i) {
    const Span tile = tile_of(i, place.tokens);
    loops_.rows.decay_pairs(tile.count(), round_up(tile.end, kRowStep),
                            from_row(scores, tile.first), sums.read().row(tile.first),
                            sums.after().data, from_row(weights, tile.first));
  }
  if (u) add_bonus(u, {0, place.tokens});
}
template <class P>
void PairWeights<P>::make_block(const DecaySums& sums, const Segments& segments, const float* u,
                                int64_t index, const ChunkPlace& place) {
  const RowUnit& rows = loops_.rows;
  const Span& block = blocks[index];
  const int64_t width = loops_.key_stride();
  if (index > 0) rows.multiply(blocks.moved(index), width, right, {blocks.step(index), 0}, right);
  const GemmOperand<P> readers =
      gemm_.by_rows(matrix_of(from_row(left, block.first), block.count(), shape_.keys), left_room_);
  const GemmOperand<P> writers =
      gemm_.transposed(matrix_of(right, blocks.reached(index), shape_.keys), right_room_);
  for (int64_t i = block.first / kSubChunk; i < tile_count(block.end); ++i) {
    const Span tile = tile_of(i, place.tokens);
    const MutableRows of_tile = from_row(weights, tile.first);
    gemm_.multiply(tile.count(), std::min(tile.end, blocks.reached(index)), shape_.keys,
                   readers.from_line(tile.first - block.first), writers, of_tile, false);
    if (blocks.far(index))
      rows.pair_weights(tile.count(), width, shape_.inclusive, from_row(r, tile.first),
                        from_row(k, tile.first), from_row(sums.read(), tile.first),
                        from_row(sums.after(), tile.first),
                        {of_tile.data + tile.first, of_tile.stride});
    hide_unseen(loops_, segments, tile, weights);
  }
  if (u) add_bonus(u, block);
}

template <class P>
void PairWeights<P>::finish_blocks() {
  const int64_t count = blocks.count();
  loops_.rows.multiply(blocks.moved(count), loops_.key_stride(), right, {blocks.step(count), 0},
                       right);
}

template <class P>
void PairWeights<P>::add_bonus(const float* u, const Span& tokens) {
  loops_.rows.bonuses(tokens.count(), shape_.keys, from_row(r, tokens.first),
                      from_row(k, tokens.first), u, weights.row(tokens.first) + tokens.first,
                      weights.stride + 1);
}

template <class P>
void PairWeights<P>::state_decays(const DecaySums& sums, const Segments& segments,
                                  const ChunkPlace& place, float* to) const {
  loops_.rows.exponentials(1, round_up(place.tokens, kRowStep), sums.read(), {zeros_, 0}, {to, 0});
  if (!segments.any()) return;
  for (int64_t t = 0; t < place.tokens; ++t)
    if (!segments.reads_state(t)) to[t] = 0;
}

template <class P>
MutableRows PairWeights<P>::readers(const Segments& segments, const ChunkPlace& place) {
  const int64_t width = loops_.key_stride();
  for (int64_t i = 0; i < blocks.count(); ++i) {
    const Span& block = blocks[i];
    loops_.rows.multiply(block.count(), width, from_row(left, block.first), {blocks.state(i), 0},
                         from_row(readers_, block.first));
  }
  for (int64_t t = 0; segments.any() && t < place.tokens; ++t)
    if (!segments.reads_state(t)) std::fill_n(readers_.row(t), width, 0.0F);
  return readers_;
}

template <class P>
void PairWeights<P>::read_state(const DecaySums& sums, const Segments& segments,
                                const ChunkPlace& place, const SourceMatrix& state, float* decays,
                                MutableRows to) {
  const bool scalar = shape_.scalar_decay();
  const SourceMatrix left_of_state =
      scalar ? r_operand : matrix_of(readers(segments, place), place.tokens, shape_.keys);
  gemm_.multiply(place.tokens, shape_.values, shape_.keys, gemm_.by_rows(left_of_state, left_room_),
                 gemm_.by_columns(state, right_room_), to, false);
  if (!scalar) return;
  state_decays(sums, segments, place, decays);
  loops_.rows.scale(place.tokens, shape_.values, to, decays, to);
}

template class PairWeights<float>;
template class PairWeights<VnniPair>;

}  // namespace fullbore::cpu
