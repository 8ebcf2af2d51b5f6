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
    std::fill(row + t + (inclusive ? 1 : 0), row + band.end, 0.0F);
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

PairWeights::PairWeights(const ChunkLoops& loops, Scratch& scratch)
    : weights(take_rows(scratch, loops.shape.chunk, loops.token_stride())),
      bands(loops, scratch),
      r_copy_(take_rows(scratch, loops.shape.chunk, loops.key_stride())),
      k_copy_(take_rows(scratch, loops.shape.chunk, loops.key_stride())),
      transposed_(take_rows(scratch, loops.key_stride(), loops.token_stride())),
      zeros_(scratch.take<float>(loops.token_stride())) {
  const int64_t chunk = loops.shape.chunk;
  if (zeros_) std::fill_n(zeros_, loops.token_stride(), 0.0F);
  if (loops.shape.scalar_decay()) {
    products = take_rows(scratch, chunk, loops.token_stride());
  } else {
    left = take_rows(scratch, chunk, loops.key_stride());
    right = take_rows(scratch, chunk, loops.key_stride());
  }
}

void PairWeights::read_keys(const ChunkLoops& loops, const void* r_operand, const void* k_operand,
                            int64_t group, const ChunkPlace& place) {
  const RecurrenceShape& shape = loops.shape;
  r = loops.read(r_operand, loops.dtype, shape.groups, group, shape.keys, place, r_copy_);
  k = loops.read(k_operand, loops.dtype, shape.groups, group, shape.keys, place, k_copy_);
  if (!shape.scalar_decay()) return;
  loops.transpose(k, place.tokens, shape.keys, transposed_);
  for (int64_t i = 0; i < band_count(place.tokens); ++i) {
    const Band band = band_of(i, place.tokens);
    loops.multiply(band.count(), band.end, shape.keys,
                   ChunkLoops::by_row({r.row(band.first), r.stride}), transposed_,
                   {products.row(band.first), products.stride}, false);
  }
}

void PairWeights::begin(const ChunkLoops& loops, const DecaySums& sums, const ChunkPlace& place) {
  if (loops.shape.scalar_decay()) return;
  bands.prepare(loops, sums, place.tokens, r, k, left, right);
}

void PairWeights::make(const ChunkLoops& loops, const DecaySums& sums, const Segments& segments,
                       const float* u, int64_t index, const ChunkPlace& place) {
  const RecurrenceShape& shape = loops.shape;
  const RowUnit& rows = loops.rows;
  const Band band = band_of(index, place.tokens);
  const Rows read = sums.read(), after = sums.after();
  if (shape.scalar_decay()) {
    for (int64_t t = band.first; t < band.end; ++t)
      rows.decay(t + 1, products.row(t), *read.row(t), after.data, weights.row(t));
  } else {
    if (index > 0)
      rows.scale(shape.keys, bands.moved(index, place.tokens), transposed_, bands.step(index),
                 transposed_);
    loops.transpose({right.row(band.first), right.stride}, band.count(), shape.keys,
                    {transposed_.data + band.first, transposed_.stride});
    loops.multiply(band.count(), bands.reached(index, place.tokens), shape.keys,
                   ChunkLoops::by_row({left.row(band.first), left.stride}), transposed_,
                   {weights.row(band.first), weights.stride}, false);
    if (bands.far(index))
      rows.pair_weights(band.count(), loops.key_stride(), shape.inclusive,
                        {r.row(band.first), r.stride}, {k.row(band.first), k.stride},
                        {read.row(band.first), read.stride}, {after.row(band.first), after.stride},
                        {weights.row(band.first) + band.first, weights.stride});
  }
  hide_unseen(segments, shape.inclusive, band, weights);
  if (u)
    rows.bonuses(band.count(), shape.keys, from_row(r, band.first), from_row(k, band.first), u,
                 weights.row(band.first) + band.first, weights.stride + 1);
}

void PairWeights::state_decays(const ChunkLoops& loops, const DecaySums& sums,
                               const Segments& segments, const ChunkPlace& place, float* to) const {
  loops.rows.exponentials(1, round_up(place.tokens, kRowStep), sums.read(), {zeros_, 0}, {to, 0});
  if (!segments.any()) return;
  for (int64_t t = 0; t < place.tokens; ++t)
    if (!segments.reads_state(t)) to[t] = 0;
}

void PairWeights::state_readers(const ChunkLoops& loops, const DecaySums& sums,
                                const Segments& segments, const ChunkPlace& place, float* decays,
                                MutableRows to) const {
  const int64_t width = loops.key_stride();
  if (loops.shape.scalar_decay()) {
    state_decays(loops, sums, segments, place, decays);
    loops.rows.scale(place.tokens, width, r, decays, to);
    return;
  }
  for (int64_t i = 0; i < band_count(place.tokens); ++i) {
    const Band band = band_of(i, place.tokens);
    loops.rows.multiply(band.count(), width, from_row(left, band.first), {bands.state(i), 0},
                        from_row(to, band.first));
  }
  if (!segments.any()) return;
  for (int64_t t = 0; t < place.tokens; ++t)
    if (!segments.reads_state(t)) std::fill_n(to.row(t), width, 0.0F);
}

}  // namespace fullbore::cpu
