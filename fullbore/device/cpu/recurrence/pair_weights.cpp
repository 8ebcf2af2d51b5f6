#include "fullbore/device/cpu/recurrence/pair_weights.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

MutableRows take_rows(Scratch& scratch, int64_t rows, int64_t stride) {
  return {scratch.take<float>(rows * stride), stride};
}

}  // namespace

void hide_unseen(const ChunkLoops& loops, const Segments& segments, const Span& strip,
                 MutableRows pairs) {
  const bool own = loops.shape.inclusive;
  if (!segments.any()) {
    loops.rows.keep_seen(strip.count(), own, {pairs.row(strip.first) + strip.first, pairs.stride});
    return;
  }
  for (int64_t t = strip.first; t < strip.end; ++t) {
    float* row = pairs.row(t);
    std::fill(row, row + segments.first_of(t), 0.0F);
    std::fill(row + t + (own ? 1 : 0), row + round_up(strip.end, kRowStep), 0.0F);
  }
}

KeyBands::KeyBands(const ChunkLoops& loops, bool keep_decays, Scratch& scratch) {
  const int64_t chunk = loops.shape.chunk, stride = loops.key_stride();
  const int64_t count = loops.shape.scalar_decay() ? 0 : strip_count(chunk);
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
  bands_ = scratch.take<Span>(count);
  if (zeros_) std::fill_n(zeros_, stride, 0.0F);
}

void KeyBands::prepare(const ChunkLoops& loops, const DecaySums& sums, int64_t tokens, Rows r,
                       Rows k, MutableRows left, MutableRows right) {
  const int64_t width = loops.key_stride();
  const RowUnit& rows = loops.rows;
  const Rows before = sums.before(), after = sums.after(), read = sums.read();
  const auto are_near = [&](int64_t first, int64_t end) {
    return rows.largest_difference(width, before.row(first), before.row(end)) <= kNear;
  };
  const auto strip_behind = [&](int64_t end) { return std::min(tokens, end + kSubChunk); };
  count_ = 0;
  for (Span band; band.end < tokens; ++count_) {
    const int64_t i = count_;
    band = {band.end, strip_behind(band.end)};
    far_[i] = !are_near(band.first, band.end);
    while (!far_[i] && band.end < tokens && are_near(band.first, strip_behind(band.end)))
      band.end = strip_behind(band.end);
    bands_[i] = band;
    const float* border = before.row(band.first);
    const float* end = before.row(band.end);
    const float* anchor = far_[i] ? end : border;
    const auto of_band = [&](auto of_chunk) { return from_row(of_chunk, band.first); };
    if (reading_.data) {
      rows.band_factors({.tokens = band.count(),
                         .width = width,
                         .border = border,
                         .anchor = anchor,
                         .read = of_band(read),
                         .after = of_band(after),
                         .r = of_band(r),
                         .k = of_band(k),
                         .reading = of_band(reading_),
                         .writing = of_band(writing_),
                         .left = of_band(left),
                         .right = of_band(right)});
    } else {
      rows.decayed(band.count(), width, of_band(r), of_band(read), {border, 0}, of_band(left));
      rows.decayed(band.count(), width, of_band(k), {anchor, 0}, of_band(after), of_band(right));
    }
    rows.exponentials(1, width, {border, 0}, {zeros_, 0}, {state_.row(i), 0});
    rows.exponentials(1, width, {sums.total(), 0}, {anchor, 0}, {rest_.row(i), 0});
    rows.exponentials(1, width, {end, 0}, {border, 0}, {step_.row(i + 1), 0});
  }
}

template <class P>
PairWeights<P>::PairWeights(const ChunkLoops& loops, const Factors<P>& factors, bool keep_decays,
                            Scratch& scratch)
    : bands(loops, keep_decays, scratch),
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
  for (int64_t i = 0; i < strip_count(place.tokens); ++i) {
    const Span strip = strip_of(i, place.tokens);
    factors_.multiply(strip.count(), strip.end, shape_.keys, readers.from_line(strip.first),
                      writers, from_row(products, strip.first), false);
    hide_unseen(loops_, segments, strip, products);
  }
}

template <class P>
void PairWeights<P>::begin(const DecaySums& sums, const ChunkPlace& place) {
  if (!shape_.scalar_decay()) bands.prepare(loops_, sums, place.tokens, r, k, left, right);
}

template <class P>
void PairWeights<P>::make(const DecaySums& sums, const Segments& segments, const float* u,
                          const ChunkPlace& place) {
  if (!shape_.scalar_decay()) {
    for (int64_t i = 0; i < bands.count(); ++i) make_band(sums, segments, u, i, place);
    return;
  }
  for (int64_t i = 0; i < strip_count(place.tokens); ++i) {
    const Span strip = strip_of(i, place.tokens);
    loops_.rows.decay_pairs(strip.count(), round_up(strip.end, kRowStep),
                            from_row(products, strip.first), sums.read().row(strip.first),
                            sums.after().data, from_row(weights, strip.first));
  }
  if (u) add_bonus(u, {0, place.tokens});
}
template <class P>
void PairWeights<P>::make_band(const DecaySums& sums, const Segments& segments, const float* u,
                               int64_t index, const ChunkPlace& place) {
  const RowUnit& rows = loops_.rows;
  const Span& band = bands[index];
  const int64_t width = loops_.key_stride();
  if (index > 0) rows.multiply(bands.moved(index), width, right, {bands.step(index), 0}, right);
  const Factor<P> readers = factors_.by_rows(
      matrix_of(from_row(left, band.first), band.count(), shape_.keys), left_room_);
  const Factor<P> writers =
      factors_.transposed(matrix_of(right, bands.reached(index), shape_.keys), right_room_);
  for (int64_t i = band.first / kSubChunk; i < strip_count(band.end); ++i) {
    const Span strip = strip_of(i, place.tokens);
    const MutableRows of_strip = from_row(weights, strip.first);
    factors_.multiply(strip.count(), std::min(strip.end, bands.reached(index)), shape_.keys,
                      readers.from_line(strip.first - band.first), writers, of_strip, false);
    if (bands.far(index))
      rows.pair_weights(strip.count(), width, shape_.inclusive, from_row(r, strip.first),
                        from_row(k, strip.first), from_row(sums.read(), strip.first),
                        from_row(sums.after(), strip.first),
                        {of_strip.data + strip.first, of_strip.stride});
    hide_unseen(loops_, segments, strip, weights);
  }
  if (u) add_bonus(u, band);
}

template <class P>
void PairWeights<P>::finish_bands() {
  const int64_t count = bands.count();
  loops_.rows.multiply(bands.moved(count), loops_.key_stride(), right, {bands.step(count), 0},
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
  for (int64_t i = 0; i < bands.count(); ++i) {
    const Span& band = bands[i];
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
