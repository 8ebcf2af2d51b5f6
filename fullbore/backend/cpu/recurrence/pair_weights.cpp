#include "fullbore/backend/cpu/recurrence/pair_weights.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

MutableRows take_rows(Scratch& scratch, int64_t rows, int64_t stride) {
  return {scratch.take<float>(rows * stride), stride};
}

}  // namespace

void hide_unseen(const Segments& segments, bool inclusive, const Band& band, MutableRows pairs) {
  for (int64_t t = band.first; t < band.end; ++t) {
    float* row = pairs.row(t);
    std::fill(row, row + segments.first_of(t), 0.0F);
    std::fill(row + t + (inclusive ? 1 : 0), row + round_up(band.end, kRowStep), 0.0F);
  }
}

KeyBands::KeyBands(const ChunkLoops& loops, Scratch& scratch) {
  const int64_t chunk = loops.shape.chunk, stride = loops.key_stride();
  const int64_t count = loops.shape.scalar_decay() ? 0 : band_count(chunk);
  const int64_t tokens = loops.shape.scalar_decay() ? 0 : chunk;
  reading_ = take_rows(scratch, tokens, stride);
  writing_ = take_rows(scratch, tokens, stride);
  state_ = take_rows(scratch, count, stride);
  rest_ = take_rows(scratch, count, stride);
  step_ = take_rows(scratch, count + 1, stride);
  zeros_ = scratch.take<float>(stride);
  far_ = scratch.take<bool>(count);
  if (zeros_) std::fill_n(zeros_, stride, 0.0F);
}

void KeyBands::prepare(const ChunkLoops& loops, const DecaySums& sums, int64_t tokens, Rows r,
                       Rows k, MutableRows left, MutableRows right) {
  const int64_t width = loops.key_stride();
  const RowUnit& rows = loops.rows;
  const Rows before = sums.before(), after = sums.after(), read = sums.read();
  for (int64_t i = 0; i < band_count(tokens); ++i) {
    const Band band = band_of(i, tokens);
    const float* border = before.row(band.first);
    const float* end = before.row(band.end);
    far_[i] = !(rows.largest_difference(width, border, end) <= kNear);
    const float* anchor = far_[i] ? end : border;
    rows.band_factors({.tokens = band.count(),
                       .width = width,
                       .border = border,
                       .anchor = anchor,
                       .read = from_row(read, band.first),
                       .after = from_row(after, band.first),
                       .r = from_row(r, band.first),
                       .k = from_row(k, band.first),
                       .reading = from_row(reading_, band.first),
                       .writing = from_row(writing_, band.first),
                       .left = from_row(left, band.first),
                       .right = from_row(right, band.first)});
    rows.exponentials(1, width, {border, 0}, {zeros_, 0}, {state_.row(i), 0});
    rows.exponentials(1, width, {sums.total(), 0}, {anchor, 0}, {rest_.row(i), 0});
    rows.exponentials(1, width, {end, 0}, {border, 0}, {step_.row(i + 1), 0});
  }
}

template <class P>
PairWeights<P>::PairWeights(const ChunkLoops& loops, const Factors<P>& factors, Scratch& scratch)
    : bands(loops, scratch),
      loops_(loops),
      factors_(factors),
      shape_(loops.shape),
      right_room_(scratch, std::max(shape_.chunk, shape_.keys),
                  std::max({shape_.chunk, shape_.keys, shape_.values})),
      zeros_(scratch.take<float>(loops.token_stride())) {
  const int64_t chunk = shape_.chunk, keys = loops.key_stride(), tokens = loops.token_stride();
  weights = take_rows(scratch, chunk, tokens);
  r_copy_ = take_rows(scratch, chunk, keys);
  k_copy_ = take_rows(scratch, chunk, keys);
  left_room_ = FactorRoom<P>(scratch, chunk, shape_.keys);
  if (zeros_) std::fill_n(zeros_, tokens, 0.0F);
  if (shape_.scalar_decay()) {
    products = take_rows(scratch, chunk, tokens);
  } else {
    left = take_rows(scratch, chunk, keys);
    right = take_rows(scratch, chunk, keys);
    readers_ = take_rows(scratch, chunk, keys);
    transposed_ = take_rows(scratch, keys, tokens);
  }
}

template <class P>
void PairWeights<P>::read_keys(const Keys& keys, const Segments& segments,
                               const ChunkPlace& place) {
  const auto read = [&](const void* operand, MutableRows copy) {
    return loops_.read(operand, loops_.dtype, shape_.groups, keys.group, shape_.keys, place, copy);
  };
  const auto factor = [&](const void* operand, Rows numbers) {
    if (!loops_.pairs) return matrix_of(numbers, place.tokens, shape_.keys);
    return loops_.factor(operand, shape_.groups, keys.group, shape_.keys, place, {});
  };
  if (!loops_.pairs || keys.as_numbers || !shape_.scalar_decay()) {
    r = read(keys.r, r_copy_);
    k = read(keys.k, k_copy_);
  }
  r_factor = factor(keys.r, r);
  k_factor = factor(keys.k, k);
  if (!shape_.scalar_decay()) return;
  const Factor<P> readers = factors_.by_rows(r_factor, left_room_);
  const Factor<P> writers = factors_.transposed(k_factor, right_room_);
  for (int64_t i = 0; i < band_count(place.tokens); ++i) {
    const Band band = band_of(i, place.tokens);
    factors_.multiply(band.count(), band.end, shape_.keys, readers.from_line(band.first), writers,
                      from_row(products, band.first), false);
    hide_unseen(segments, shape_.inclusive, band, products);
  }
}

template <class P>
void PairWeights<P>::begin(const DecaySums& sums, const ChunkPlace& place) {
  if (!shape_.scalar_decay()) bands.prepare(loops_, sums, place.tokens, r, k, left, right);
}

template <class P>
void PairWeights<P>::make(const DecaySums& sums, const Segments& segments, const float* u,
                          int64_t index, const ChunkPlace& place) {
  const RowUnit& rows = loops_.rows;
  const Band band = band_of(index, place.tokens);
  const MutableRows of_band = from_row(weights, band.first);
  if (shape_.scalar_decay()) {
    rows.decay_pairs(band.count(), round_up(band.end, kRowStep), from_row(products, band.first),
                     sums.read().row(band.first), sums.after().data, of_band);
  } else {
    if (index > 0)
      rows.scale(shape_.keys, bands.moved(index, place.tokens), transposed_, bands.step(index),
                 transposed_);
    loops_.transpose(from_row(right, band.first), band.count(), shape_.keys,
                     {transposed_.data + band.first, transposed_.stride});
    const int64_t reached = bands.reached(index, place.tokens);
    factors_.multiply(
        band.count(), reached, shape_.keys,
        factors_.by_rows(matrix_of(from_row(left, band.first), band.count(), shape_.keys),
                         left_room_),
        factors_.by_columns(matrix_of(transposed_, shape_.keys, reached), right_room_), of_band,
        false);
    if (bands.far(index))
      rows.pair_weights(band.count(), loops_.key_stride(), shape_.inclusive,
                        from_row(r, band.first), from_row(k, band.first),
                        from_row(sums.read(), band.first), from_row(sums.after(), band.first),
                        {of_band.data + band.first, of_band.stride});
    hide_unseen(segments, shape_.inclusive, band, weights);
  }
  if (u) add_bonus(u, band);
}

template <class P>
void PairWeights<P>::add_bonus(const float* u, const Band& band) {
  loops_.rows.bonuses(band.count(), shape_.keys, from_row(r, band.first), from_row(k, band.first),
                      u, weights.row(band.first) + band.first, weights.stride + 1);
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
  for (int64_t i = 0; i < band_count(place.tokens); ++i) {
    const Band band = band_of(i, place.tokens);
    loops_.rows.multiply(band.count(), width, from_row(left, band.first), {bands.state(i), 0},
                         from_row(readers_, band.first));
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
      scalar ? r_factor : matrix_of(readers(segments, place), place.tokens, shape_.keys);
  factors_.multiply(place.tokens, shape_.values, shape_.keys,
                    factors_.by_rows(left_of_state, left_room_),
                    factors_.by_columns(state, right_room_), to, false);
  if (!scalar) return;
  state_decays(sums, segments, place, decays);
  loops_.rows.scale(place.tokens, shape_.values, to, decays, to);
}

template class PairWeights<float>;
template class PairWeights<Bf16Pair>;

}  // namespace fullbore::cpu
