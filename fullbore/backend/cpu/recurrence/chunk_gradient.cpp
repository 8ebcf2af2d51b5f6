#include "fullbore/backend/cpu/recurrence/chunk_gradient.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

Rows from(Rows rows, int64_t first) { return {rows.row(first), rows.stride}; }
MutableRows from(MutableRows rows, int64_t first) { return {rows.row(first), rows.stride}; }

}  // namespace

ChunkGradient::ChunkGradient(const ChunkLoops& loops, Scratch& scratch)
    : loops_(loops),
      shape_(loops.shape),
      scalar_(loops.shape.scalar_decay()),
      sums_(loops, scratch),
      segments_(scratch.take<int64_t>(loops.shape.chunk)),
      pairs_(loops, scratch) {
  const int64_t chunk = shape_.chunk, keys = loops.key_stride(), tokens = loops.token_stride();
  const auto take = [&](int64_t rows, int64_t stride) {
    return MutableRows{scratch.take<float>(rows * stride), stride};
  };
  for (MutableRows* rows : {&dr, &dk, &of_r_, &of_k_, &outside_, &scaled_})
    *rows = take(chunk, keys);
  reading_ = {scratch.take<float>(std::max(chunk * keys, tokens)), keys};
  dv = take(chunk, shape_.values);
  slopes_ = take(chunk, tokens);
  values_transposed_ = take(shape_.values, tokens);
  state_transposed_ = take(shape_.values, keys);
  if (scalar_) {
    slopes_sum_ = take(chunk, tokens);
    for (MutableRows* row : {&writing_, &written_, &read_, &from_}) *row = take(1, tokens);
    dg = {scratch.take<float>(tokens), 1};
  } else {
    for (MutableRows* rows : {&far_k_, &right_, &writing_, &written_, &read_, &from_, &dg})
      *rows = take(chunk, keys);
  }
  const int64_t longest = std::max(keys, tokens);
  for (float** row : {&du, &passing_, &row_, &through_, &bonus_slopes_, &zeros_, &ones_})
    *row = scratch.take<float>(longest);
  if (!zeros_) return;
  std::fill_n(zeros_, longest, 0.0F);
  std::fill_n(ones_, longest, 1.0F);
}

void ChunkGradient::begin_group(const void* r, const void* k, const uint8_t* resets, int64_t group,
                                const ChunkPlace& place) {
  place_ = place;
  segments_.read(resets, shape_, place);
  pairs_.read_keys(loops_, r, k, group, place);
  std::fill_n(dr.data, place.tokens * dr.stride, 0.0F);
  std::fill_n(dk.data, place.tokens * dk.stride, 0.0F);
  if (scalar_) std::fill_n(slopes_sum_.data, place.tokens * slopes_sum_.stride, 0.0F);
}

void ChunkGradient::of_head(const Head& head) {
  const int64_t tokens = place_.tokens;
  sums_.read_decays(loops_, head.g, head.head, place_);
  loops_.transpose(head.v, tokens, shape_.values, values_transposed_);
  pairs_.begin(loops_, sums_, place_);
  prepare_borders();
  pairs(head);
  through_states(head);
  if (scalar_)
    sum_one_decay(head);
  else
    sum_decays(head);
  if (head.u) of_bonus(head);
}

void ChunkGradient::prepare_borders() {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  if (scalar_) {
    rows.decay(tokens, ones_, *sums_.total(), sums_.after().data, writing_.data);
    rows.decay(1, ones_, *sums_.total(), zeros_, through_);
    std::fill_n(through_, shape_.keys, float{through_[0]});
  } else {
    rows.exponentials(tokens, width, {sums_.total(), 0}, sums_.after(), writing_);
    rows.exponentials(1, width, {sums_.total(), 0}, {zeros_, 0}, {through_, 0});
  }
  if (!segments_.any()) return;
  for (int64_t t = 0; t < tokens; ++t) {
    if (segments_.writes_state(t)) continue;
    if (scalar_)
      writing_.data[t] = 0;
    else
      std::fill_n(writing_.row(t), width, 0.0F);
  }
  if (!segments_.passes_through()) std::fill_n(through_, shape_.keys, 0.0F);
}

// Weights and their cotangents, dv, and the cotangents of r and k by pairs.
void ChunkGradient::pairs(const Head& head) {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  const int64_t bands = band_count(tokens);
  const MutableRows& weights = pairs_.weights;
  std::fill_n(dv.data, tokens * dv.stride, 0.0F);
  if (scalar_) {
    std::fill_n(from_.data, loops_.token_stride(), 0.0F);
  } else {
    std::copy_n(pairs_.right.data, tokens * width, right_.data);
    std::fill_n(of_k_.data, tokens * width, 0.0F);
    std::fill_n(far_k_.data, tokens * width, 0.0F);
  }
  for (int64_t i = 0; i < bands; ++i) {
    const Band band = band_of(i, tokens);
    const Rows dy = from(head.dy, band.first);
    pairs_.make(loops_, sums_, segments_, head.u, i, place_);
    loops_.multiply(band.end, shape_.values, band.count(),
                    ChunkLoops::by_column(from(weights, band.first)), dy, dv, true);
    loops_.multiply(band.count(), band.end, shape_.values, ChunkLoops::by_row(dy),
                    values_transposed_, from(slopes_, band.first), false);
    for (int64_t t = band.first; t < band.end; ++t) bonus_slopes_[t] = slopes_.row(t)[t];
    hide_unseen(segments_, shape_.inclusive, band, slopes_);
    if (!scalar_) {
      of_band_readers(i);
      continue;
    }
    for (int64_t t = band.first; t < band.end; ++t) {
      const int64_t whole = round_up(t + 1, kRowStep);
      rows.dots(1, t + 1, {weights.row(t), 0}, {slopes_.row(t), 0}, read_.data + t);
      rows.multiply_add(1, whole, {weights.row(t), 0}, {slopes_.row(t), 0}, {from_.data, 0});
      rows.decay(t + 1, slopes_.row(t), *sums_.read().row(t), sums_.after().data, row_);
      std::fill(row_ + t + 1, row_ + whole, 0.0F);  // there the exponential may be infinite
      rows.add(1, whole, {row_, 0}, {slopes_sum_.row(t), 0});
    }
  }
  if (scalar_) return;
  for (int64_t i = bands - 1; i >= 0; --i) of_band_writers(i);
  rows.multiply_add(tokens, width, of_k_, pairs_.bands.writing(), far_k_);
}

void ChunkGradient::of_band_readers(int64_t index) {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  const Band band = band_of(index, tokens);
  const KeyBands& bands = pairs_.bands;
  if (index > 0) rows.multiply(bands.moved(index), width, right_, {bands.step(index), 0}, right_);
  loops_.multiply(band.count(), shape_.keys, bands.reached(index, tokens),
                  ChunkLoops::by_row(from(slopes_, band.first)), right_, from(of_r_, band.first),
                  false);
  rows.multiply(band.count(), width, from(of_r_, band.first), from(bands.reading(), band.first),
                from(of_r_, band.first));
  if (!bands.far(index)) return;
  rows.pair_slopes(band.count(), width, shape_.inclusive, from(pairs_.r, band.first),
                   from(pairs_.k, band.first), from(sums_.read(), band.first),
                   from(sums_.after(), band.first),
                   {slopes_.row(band.first) + band.first, slopes_.stride}, from(of_r_, band.first),
                   from(far_k_, band.first));
}

// From the last band on, with decays up to the border of the band at work, as in the other direction.
void ChunkGradient::of_band_writers(int64_t index) {
  const Band band = band_of(index, place_.tokens);
  const KeyBands& bands = pairs_.bands;
  loops_.multiply(bands.reached(index, place_.tokens), shape_.keys, band.count(),
                  ChunkLoops::by_column(from(slopes_, band.first)), from(pairs_.left, band.first),
                  of_k_, true);
  if (index > 0)
    loops_.rows.multiply(bands.moved(index), loops_.key_stride(), of_k_, {bands.step(index), 0},
                         of_k_);
}

// What passes by the state before the chunk and by the one behind it: adds to dr, dk, dv.
void ChunkGradient::through_states(const Head& head) {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  // dv += (k times what is left of it) cotangent
  if (scalar_)
    rows.scale(tokens, width, pairs_.k, writing_.data, scaled_);
  else
    rows.multiply(tokens, width, pairs_.k, writing_, scaled_);
  loops_.multiply(tokens, shape_.values, shape_.keys, ChunkLoops::by_row(scaled_), head.cotangent,
                  dv, true);
  // dr = (dy state^T) times decays
  loops_.transpose(head.state, shape_.keys, shape_.values, state_transposed_);
  loops_.multiply(tokens, shape_.keys, shape_.values, ChunkLoops::by_row(head.dy),
                  state_transposed_, outside_, false);
  pairs_.state_decays(loops_, sums_, segments_, place_, reading_);
  if (scalar_) {
    rows.scale(tokens, width, outside_, reading_.data, outside_);
    rows.dots(tokens, shape_.keys, pairs_.r, outside_, row_);
    rows.add(1, round_up(tokens, kRowStep), {row_, 0}, read_);
  } else {
    rows.multiply(tokens, width, outside_, reading_, outside_);
    rows.add(tokens, width, of_r_, outside_);
    rows.multiply(tokens, width, pairs_.r, outside_, read_);
  }
  rows.add(tokens, width, outside_, dr);
  // dk = (v cotangent^T) times decays
  loops_.transpose(head.cotangent, shape_.keys, shape_.values, state_transposed_);
  loops_.multiply(tokens, shape_.keys, shape_.values, ChunkLoops::by_row(head.v), state_transposed_,
                  outside_, false);
  if (scalar_) {
    rows.scale(tokens, width, outside_, writing_.data, outside_);
    rows.dots(tokens, shape_.keys, pairs_.k, outside_, written_.data);
  } else {
    rows.multiply(tokens, width, outside_, writing_, outside_);
    rows.multiply(tokens, width, pairs_.k, outside_, written_);
    rows.multiply(tokens, width, pairs_.k, far_k_, from_);
    rows.add(tokens, width, far_k_, outside_);
  }
  rows.add(tokens, width, outside_, dk);
}

// u k slope, u r slope and r k slope with slope = v dy.
void ChunkGradient::of_bonus(const Head& head) {
  const RowUnit& rows = loops_.rows;
  const int64_t tokens = place_.tokens, width = loops_.key_stride();
  rows.scale(tokens, width, pairs_.k, bonus_slopes_, scaled_);
  rows.multiply_add(tokens, width, scaled_, {head.u, 0}, dr);
  std::fill_n(du, width, 0.0F);
  rows.multiply_add(tokens, width, scaled_, pairs_.r, {du, 0});
  rows.scale(tokens, width, pairs_.r, bonus_slopes_, scaled_);
  rows.multiply_add(tokens, width, scaled_, {head.u, 0}, dk);
}

void ChunkGradient::sum_decays(const Head& head) {
  const RowUnit& rows = loops_.rows;
  rows.dots(shape_.keys, shape_.values, head.state, head.cotangent, passing_);
  rows.multiply(1, loops_.key_stride(), {passing_, 0}, {through_, 0}, {passing_, 0});
  rows.decay_sums(place_.tokens, loops_.key_stride(), shape_.inclusive, passing_, written_, read_,
                  from_, dg);
  limit(shape_.keys);
}

void ChunkGradient::sum_one_decay(const Head& head) {
  loops_.rows.dots(shape_.keys, shape_.values, head.state, head.cotangent, passing_);
  float before = 0;
  for (int64_t key = 0; key < shape_.keys; ++key) before += passing_[key];
  before *= through_[0];
  for (int64_t t = 0; t < place_.tokens; ++t) {
    dg.data[t] = before;
    before += written_.data[t];
  }
  float behind = 0, minus = 0;
  for (int64_t t = place_.tokens - 1; t >= 0; --t) {
    minus += from_.data[t];
    const float with = behind + read_.data[t];
    dg.data[t] += (shape_.inclusive ? with : behind) - minus;
    behind = with;
  }
  limit(1);
}

// Beyond the limits of a log-decay nothing depends on it.
void ChunkGradient::limit(int64_t width) {
  const Rows given = sums_.decays();
  for (int64_t t = 0; t < place_.tokens; ++t)
    for (int64_t c = 0; c < width; ++c) {
      const float g = given.row(t)[c];
      if (g < static_cast<float>(kLeastLogDecay) || g > 0) dg.row(t)[c] = 0;
    }
}

// Of one decay, r and k meet the sum of what all heads ask for.
void ChunkGradient::end_group() {
  if (!scalar_) return;
  for (int64_t i = 0; i < band_count(place_.tokens); ++i) {
    const Band band = band_of(i, place_.tokens);
    const MutableRows slopes = from(slopes_sum_, band.first);
    loops_.multiply(band.count(), shape_.keys, band.end, ChunkLoops::by_row(slopes), pairs_.k,
                    from(dr, band.first), true);
    loops_.multiply(band.end, shape_.keys, band.count(), ChunkLoops::by_column(slopes),
                    from(pairs_.r, band.first), dk, true);
  }
}

}  // namespace fullbore::cpu
