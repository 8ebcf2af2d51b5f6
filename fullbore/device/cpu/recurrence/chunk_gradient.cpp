#include "fullbore/device/cpu/recurrence/chunk_gradient.h"

#include <algorithm>

namespace fullbore::cpu {

template <class P>
ChunkGradient<P>::ChunkGradient(const ChunkLoops& loops, const GemmOperands<P>& gemm,
                                Scratch& scratch)
    : loops_(loops),
      gemm_(gemm),
      shape_(loops.shape),
      scalar_(loops.shape.scalar_decay()),
      sums_(loops, scratch),
      segments_(scratch.take<int64_t>(loops.shape.chunk)),
      pairs_(loops, gemm, true, scratch) {
  const int64_t chunk = shape_.chunk, keys = loops.key_stride(), tokens = loops.token_stride();
  const auto take = [&](int64_t rows, int64_t stride) {
    return MutableRows{scratch.take<float>(rows * stride), stride};
  };
  for (MutableRows* rows : {&dr_copy_, &dk_copy_, &outside_r_, &outside_k_})
    *rows = take(chunk, keys);
  dv_copy_ = take(chunk, shape_.values);
  slopes_ = take(chunk, tokens);
  const int64_t widest = std::max({chunk, shape_.keys, shape_.values});
  for (OperandRoom<P>* room :
       {&pairs_room_, &values_room_, &cotangents_room_, &left_room_, &right_room_})
    *room = OperandRoom<P>(scratch, widest, widest);
  if (scalar_) {
    scaled_ = take(chunk, keys);
    slopes_sum_ = take(chunk, tokens);
    for (MutableRows* row : {&written_, &read_, &from_}) *row = take(1, tokens);
    dg_copy_ = {scratch.take<float>(tokens), 1};
  } else {
    for (MutableRows* rows : {&of_r_, &of_k_, &far_r_, &far_k_, &written_, &dg_copy_})
      *rows = take(chunk, keys);
  }
  const int64_t longest = std::max(keys, tokens);
  for (float** row : {&du, &reading_, &writing_, &passing_, &row_, &through_, &bonus_slopes_,
                      &behind_, &minus_, &zeros_, &ones_})
    *row = scratch.take<float>(longest);
  if (!zeros_) return;
  std::fill_n(zeros_, longest, 0.0F);
  std::fill_n(ones_, longest, 1.0F);
}

template <class P>
void ChunkGradient<P>::begin_group(const Group& group, const ChunkPlace& place) {
  group_ = group;
  place_ = place;
  segments_.read(group.resets, shape_, place);
  pairs_.read_keys({group.r, group.k, group.group, true}, segments_, place);
  const auto of_keys = [&](void* tensor, MutableRows copy) {
    return loops_.results(tensor, loops_.dtype, shape_.groups, group.group, shape_.keys, place,
                          copy);
  };
  dr_ = of_keys(group.dr, dr_copy_);
  dk_ = of_keys(group.dk, dk_copy_);
  if (scalar_ || loops_.shared_heads() > 1)
    for (int64_t t = 0; t < place.tokens; ++t) {
      std::fill_n(dr_.row(t), loops_.key_stride(), 0.0F);
      std::fill_n(dk_.row(t), loops_.key_stride(), 0.0F);
    }
  if (scalar_) std::fill_n(slopes_sum_.data, place.tokens * slopes_sum_.stride, 0.0F);
}

template <class P>
void ChunkGradient<P>::of_head(const Head& head) {
  dv_ = loops_.results(head.dv, loops_.dtype, shape_.heads, head.head, shape_.values, place_,
                       dv_copy_);
  dg_ =
      loops_.results(head.dg, DType::f32, shape_.heads, head.head, shape_.decays, place_, dg_copy_);
  carried_ = head.state.data != nullptr;
  wanted_ = head.cotangent.data != nullptr;
  sums_.read_decays(loops_, head.g, head.head, place_);
  pairs_.begin(sums_, place_);
  prepare_borders();
  if (scalar_) through_states(head);
  pairs(head);
  if (!scalar_) through_states(head);
  if (carried_ && wanted_)
    loops_.rows.dots(shape_.keys, shape_.values, head.state, head.cotangent, passing_);
  else
    std::fill_n(passing_, shape_.keys, 0.0F);
  if (scalar_) {
    of_one_decay();
    sum_one_decay();
    if (head.u) of_bonus(head);
  } else {
    of_key_decays(head);
  }
  loops_.write(dv_, head.dv, loops_.dtype, shape_.heads, head.head, shape_.values, place_);
  loops_.write(dg_, head.dg, DType::f32, shape_.heads, head.head, shape_.decays, place_);
}

template <class P>
void ChunkGradient<P>::prepare_borders() {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens;
  if (scalar_) {
    rows.decay(tokens, ones_, *sums_.total(), sums_.after().data, writing_);
    rows.decay(1, ones_, *sums_.total(), zeros_, through_);
    std::fill_n(through_, shape_.keys, float{through_[0]});
    pairs_.state_decays(sums_, segments_, place_, reading_);
  } else {
    rows.exponentials(1, loops_.key_stride(), {sums_.total(), 0}, {zeros_, 0}, {through_, 0});
  }
  if (!segments_.any()) return;
  for (int64_t t = 0; scalar_ && t < tokens; ++t)
    if (!segments_.writes_state(t)) writing_[t] = 0;
  if (!segments_.passes_through()) std::fill_n(through_, loops_.key_stride(), 0.0F);
}

// Weights and their cotangents, dv, and the cotangents of r and k by pairs.
template <class P>
void ChunkGradient<P>::pairs(const Head& head) {
  const int64_t tokens = place_.tokens;
  if (scalar_) std::fill_n(from_.data, loops_.token_stride(), 0.0F);
  const GemmOperand<P> cotangents = gemm_.by_rows(head.dy, cotangents_room_);
  const GemmOperand<P> values = gemm_.transposed(head.v, values_room_);
  for (int64_t i = 0; i < tile_count(tokens); ++i) {
    const Span tile = tile_of(i, tokens);
    gemm_.multiply(tile.count(), tile.end, shape_.values, cotangents.from_line(tile.first), values,
                   from_row(slopes_, tile.first), false);
    for (int64_t t = tile.first; t < tile.end; ++t) bonus_slopes_[t] = slopes_.row(t)[t];
    hide_unseen(loops_, segments_, tile, slopes_);
    if (scalar_) of_tile_pairs(tile);
  }
  if (scalar_) {
    if (head.u) pairs_.add_bonus(head.u, {0, tokens});
  } else {
    for (int64_t i = 0; i < pairs_.blocks.count(); ++i) {
      pairs_.make_block(sums_, segments_, head.u, i, place_);
      of_block_readers(i);
    }
    pairs_.finish_blocks();
    for (int64_t i = pairs_.blocks.count() - 1; i >= 0; --i) of_block_writers(i);
  }
  by_writers(pairs_.weights, {0, tokens}, gemm_.by_columns(head.dy, cotangents_room_),
             shape_.values, dv_, scalar_ && wanted_);
}

template <class P>
void ChunkGradient<P>::by_writers(Rows pairs, const Span& readers, GemmOperand<P> x,
                                  int64_t columns, MutableRows to, bool accumulate) {
  const GemmOperand<P> by_writer = gemm_.by_columns(
      matrix_of(from_row(pairs, readers.first), readers.count(), readers.end), pairs_room_);
  gemm_.multiply(readers.first, columns, readers.count(), by_writer, x, to, accumulate);
  for (int64_t i = readers.first / kSubChunk; i < tile_count(readers.end); ++i) {
    const Span tile = tile_of(i, readers.end);
    const int64_t before = tile.first - readers.first;
    gemm_.multiply(tile.count(), columns, readers.end - tile.first,
                   by_writer.from_line(tile.first).from_depth(before), x.from_depth(before),
                   from_row(to, tile.first), accumulate);
  }
}

template <class P>
void ChunkGradient<P>::of_tile_pairs(const Span& tile) {
  loops_.rows.decay_slopes({.readers = tile.count(),
                            .width = round_up(tile.end, kRowStep),
                            .read = sums_.read().row(tile.first),
                            .after = sums_.after().data,
                            .scores = from_row(pairs_.scores, tile.first),
                            .slopes = from_row(slopes_, tile.first),
                            .weights = from_row(pairs_.weights, tile.first),
                            .slopes_sum = from_row(slopes_sum_, tile.first),
                            .read_sums = read_.data + tile.first,
                            .written_sums = from_.data});
}

template <class P>
void ChunkGradient<P>::of_block_readers(int64_t index) {
  const RowUnit& rows = loops_.rows;
  const int64_t width = loops_.key_stride();
  const KeyBlocks& blocks = pairs_.blocks;
  const Span& block = blocks[index];
  const int64_t reached = blocks.reached(index);
  const GemmOperand<P> by_reader =
      gemm_.by_rows(matrix_of(from_row(slopes_, block.first), block.count(), reached), left_room_);
  const GemmOperand<P> keys =
      gemm_.by_columns(matrix_of(pairs_.right, reached, shape_.keys), right_room_);
  for (int64_t i = block.first / kSubChunk; i < tile_count(block.end); ++i) {
    const Span tile = tile_of(i, block.end);
    gemm_.multiply(tile.count(), shape_.keys, std::min(tile.end, reached),
                   by_reader.from_line(tile.first - block.first), keys, from_row(of_r_, tile.first),
                   false);
  }
  if (!blocks.far(index)) return;
  for (const MutableRows& far : {far_r_, far_k_})
    std::fill_n(far.row(block.first), block.count() * width, 0.0F);
  rows.pair_slopes(block.count(), width, shape_.inclusive, from_row(pairs_.r, block.first),
                   from_row(pairs_.k, block.first), from_row(sums_.read(), block.first),
                   from_row(sums_.after(), block.first),
                   {slopes_.row(block.first) + block.first, slopes_.stride},
                   from_row(far_r_, block.first), from_row(far_k_, block.first));
}

// From the last block on, with decays up to the border of the block at work, as in the other direction.
template <class P>
void ChunkGradient<P>::of_block_writers(int64_t index) {
  const int64_t width = loops_.key_stride();
  const KeyBlocks& blocks = pairs_.blocks;
  const Span& block = blocks[index];
  const bool last = index + 1 == blocks.count();
  const int64_t reached = blocks.reached(index);
  const GemmOperand<P> readers = gemm_.by_columns(
      matrix_of(from_row(pairs_.left, block.first), block.count(), shape_.keys), right_room_);
  if (blocks.far(index)) {
    const GemmOperand<P> by_writer = gemm_.by_columns(
        matrix_of(from_row(slopes_, block.first), block.count(), reached), pairs_room_);
    gemm_.multiply(reached, shape_.keys, block.count(), by_writer, readers, of_k_, !last);
    if (last) std::fill_n(of_k_.row(reached), block.count() * width, 0.0F);
  } else {
    by_writers(slopes_, block, readers, shape_.keys, of_k_, !last);
  }
  if (index > 0)
    loops_.rows.multiply(blocks.moved(index), width, of_k_, {blocks.step(index), 0}, of_k_);
}

template <class P>
void ChunkGradient<P>::hide_readers(MutableRows rows) const {
  for (int64_t t = 0; segments_.any() && t < place_.tokens; ++t)
    if (!segments_.reads_state(t)) std::fill_n(rows.row(t), loops_.key_stride(), 0.0F);
}
template <class P>
void ChunkGradient<P>::hide_writers(MutableRows rows) const {
  for (int64_t t = 0; segments_.any() && t < place_.tokens; ++t)
    if (!segments_.writes_state(t)) std::fill_n(rows.row(t), loops_.key_stride(), 0.0F);
}

// What passes by the state before the chunk and by the one behind it: dv = or += (k times what is left of
// it) cotangent, and without decays dr = dy state^T, dk = v cotangent^T. Nothing where those are 0: at the
// beginning of a sequence, and at its end.
template <class P>
void ChunkGradient<P>::through_states(const Head& head) {
  const int64_t tokens = place_.tokens;
  const SourceMatrix state = matrix_of(head.state, shape_.keys, shape_.values);
  const SourceMatrix cotangent = matrix_of(head.cotangent, shape_.keys, shape_.values);
  if (carried_)
    gemm_.multiply(tokens, shape_.keys, shape_.values, gemm_.by_rows(head.dy, left_room_),
                   gemm_.transposed(state, right_room_), outside_r_, false);
  if (!wanted_) return;
  if (!scalar_) hide_writers(pairs_.right);
  const SourceMatrix left_of_k =
      scalar_ ? pairs_.k_operand : matrix_of(pairs_.right, tokens, shape_.keys);
  gemm_.multiply(tokens, shape_.values, shape_.keys, gemm_.by_rows(left_of_k, left_room_),
                 gemm_.by_columns(cotangent, right_room_), dv_, !scalar_);
  if (scalar_) loops_.rows.scale(tokens, shape_.values, dv_, writing_, dv_);
  gemm_.multiply(tokens, shape_.keys, shape_.values, gemm_.by_rows(head.v, left_room_),
                 gemm_.transposed(cotangent, right_room_), outside_k_, false);
}

template <class P>
void ChunkGradient<P>::of_one_decay() {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens;
  if (carried_) {
    rows.add_scaled(tokens, shape_.keys, outside_r_, reading_, pairs_.r, dr_, row_);
    rows.add(1, round_up(tokens, kRowStep), {row_, 0}, read_);
  }
  if (wanted_)
    rows.add_scaled(tokens, shape_.keys, outside_k_, writing_, pairs_.k, dk_, written_.data);
  else
    std::fill_n(written_.data, tokens, 0.0F);
}

template <class P>
void ChunkGradient<P>::of_key_decays(const Head& head) {
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  const KeyBlocks& blocks = pairs_.blocks;
  if (carried_) hide_readers(outside_r_);
  if (wanted_) hide_writers(outside_k_);
  for (float* sum : {du, behind_, minus_}) std::fill_n(sum, width, 0.0F);
  for (int64_t i = blocks.count() - 1; i >= 0; --i) {
    const Span& block = blocks[i];
    const auto rows = [&](Rows of_chunk) { return from_row(of_chunk, block.first); };
    const auto results = [&](MutableRows of_chunk) { return from_row(of_chunk, block.first); };
    const Rows none{zeros_, 0};
    loops_.rows.key_cotangents({.tokens = block.count(),
                                .width = width,
                                .own = shape_.inclusive,
                                .add = loops_.shared_heads() > 1,
                                .rounded = GemmOperands<P>::kVnni,
                                .r = rows(pairs_.r),
                                .k = rows(pairs_.k),
                                .reading = rows(blocks.reading()),
                                .writing = rows(blocks.writing()),
                                .pairs_r = rows(of_r_),
                                .outside_r = carried_ ? rows(outside_r_) : none,
                                .far_r = blocks.far(i) ? rows(far_r_) : none,
                                .pairs_k = rows(of_k_),
                                .outside_k = wanted_ ? rows(outside_k_) : none,
                                .far_k = blocks.far(i) ? rows(far_k_) : none,
                                .state = blocks.state(i),
                                .rest = blocks.rest(i),
                                .u = head.u ? head.u : zeros_,
                                .slopes = head.u ? bonus_slopes_ + block.first : zeros_,
                                .dr = results(dr_),
                                .dk = results(dk_),
                                .written = results(written_),
                                .dg = results(dg_),
                                .du = du,
                                .behind = behind_,
                                .minus = minus_});
  }
  loops_.rows.multiply(1, width, {passing_, 0}, {through_, 0}, {passing_, 0});
  loops_.rows.decay_cotangents(tokens, width, passing_, written_, sums_.decays(),
                               static_cast<float>(kLeastLogDecay), dg_);
}

// u k slope, u r slope and r k slope with slope = v dy.
template <class P>
void ChunkGradient<P>::of_bonus(const Head& head) {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  rows.scale(tokens, width, pairs_.k, bonus_slopes_, scaled_);
  rows.multiply_add(tokens, width, scaled_, {head.u, 0}, dr_);
  std::fill_n(du, width, 0.0F);
  rows.multiply_add(tokens, width, scaled_, pairs_.r, {du, 0});
  rows.scale(tokens, width, pairs_.r, bonus_slopes_, scaled_);
  rows.multiply_add(tokens, width, scaled_, {head.u, 0}, dk_);
}

// Beyond the limits of a log-decay nothing depends on it.
template <class P>
void ChunkGradient<P>::sum_one_decay() {
  float before = 0;
  for (int64_t key = 0; key < shape_.keys; ++key) before += passing_[key];
  before *= through_[0];
  for (int64_t t = 0; t < place_.tokens; ++t) {
    *dg_.row(t) = before;
    before += written_.data[t];
  }
  float behind = 0, minus = 0;
  for (int64_t t = place_.tokens - 1; t >= 0; --t) {
    minus += from_.data[t];
    const float with = behind + read_.data[t];
    *dg_.row(t) += (shape_.inclusive ? with : behind) - minus;
    behind = with;
    const float g = *sums_.decays().row(t);
    if (g < static_cast<float>(kLeastLogDecay) || g > 0) *dg_.row(t) = 0;
  }
}

// Of one decay, r and k meet the sum of what all heads ask for.
template <class P>
void ChunkGradient<P>::end_group() {
  if (scalar_) {
    const int64_t tokens = place_.tokens;
    const GemmOperand<P> by_reader =
        gemm_.by_rows(matrix_of(slopes_sum_, tokens, tokens), left_room_);
    const GemmOperand<P> keys = gemm_.by_columns(pairs_.k_operand, values_room_);
    for (int64_t i = 0; i < tile_count(tokens); ++i) {
      const Span tile = tile_of(i, tokens);
      gemm_.multiply(tile.count(), shape_.keys, tile.end, by_reader.from_line(tile.first), keys,
                     from_row(dr_, tile.first), true);
    }
    by_writers(slopes_sum_, {0, tokens}, gemm_.by_columns(pairs_.r_operand, cotangents_room_),
               shape_.keys, dk_, true);
  }
  loops_.write(dr_, group_.dr, loops_.dtype, shape_.groups, group_.group, shape_.keys, place_);
  loops_.write(dk_, group_.dk, loops_.dtype, shape_.groups, group_.group, shape_.keys, place_);
}

template class ChunkGradient<float>;
template class ChunkGradient<VnniPair>;

}  // namespace fullbore::cpu
