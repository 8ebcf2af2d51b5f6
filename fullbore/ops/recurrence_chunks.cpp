#include <algorithm>
#include <limits>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

constexpr int kTokenAxis = 3;

}  // namespace

// Tokens that are missing from the last chunk neither decay nor add anything.
RecurrenceChunks::RecurrenceChunks(const RecurrenceShape& shape, Tensor g, Tensor resets)
    : shape_(shape), compute_(compute_dtype(g.dtype())) {
  const Tensor decays = split(clamp(widened(g), kLeastLogDecay, 0));
  after_ = cumsum(decays, kTokenAxis);
  before_ = cumsum(decays, kTokenAxis, true);
  read_ = shape.inclusive ? after_ : before_;
  if (!resets.valid()) return;
  Tensor flags = cast(resets, compute_);
  const int64_t padded = shape.chunks * shape.chunk;
  if (padded > shape.tokens) flags = pad(flags, 1, 0, padded - shape.tokens);
  flags = reshape(flags, {shape.batch, shape.chunks, 1, shape.chunk, 1});
  segment_ = cumsum(transpose(flags, {1, 0, 2, 3, 4}), kTokenAxis);
}

Tensor RecurrenceChunks::split(Tensor x) const {
  const int64_t heads = x.dim(2), width = x.dim(3);
  x = widened(x);
  const int64_t padded = shape_.chunks * shape_.chunk;
  if (padded > shape_.tokens) x = pad(x, 1, 0, padded - shape_.tokens);
  x = reshape(x, {shape_.batch, shape_.chunks, shape_.chunk, heads, width});
  x = transpose(x, {1, 0, 3, 2, 4});
  if (heads == shape_.heads) return x;
  const int64_t shared = shape_.heads / heads;
  x = broadcast_to(expand_dims(x, 3),
                   {shape_.chunks, shape_.batch, heads, shared, shape_.chunk, width});
  return reshape(x, {shape_.chunks, shape_.batch, shape_.heads, shape_.chunk, width});
}

Tensor RecurrenceChunks::joined(Tensor x, DType dtype) const {
  const int64_t heads = x.dim(2), width = x.dim(4);
  x = reshape(transpose(x, {1, 0, 3, 2, 4}),
              {shape_.batch, shape_.chunks * shape_.chunk, heads, width});
  if (x.dim(1) > shape_.tokens) x = slice(x, 1, 0, shape_.tokens);
  return as_dtype(x, dtype);
}

Tensor RecurrenceChunks::summed(Tensor x, DType dtype) const {
  if (shape_.groups != shape_.heads) {
    x = reshape(x, {shape_.chunks, shape_.batch, shape_.groups, shape_.heads / shape_.groups,
                    shape_.chunk, x.dim(4)});
    x = reduce_sum(x, {3});
  }
  return joined(x, dtype);
}

Tensor RecurrenceChunks::tokens(Tensor x, int64_t first, int64_t end) {
  return first == 0 && end == x.dim(kTokenAxis) ? x : slice(x, kTokenAxis, first, end);
}

// Masked before the exponential is taken, not after.
Tensor RecurrenceChunks::exp_where(Tensor visible, Tensor exponent) const {
  if (!visible.valid()) return exp(exponent);
  return exp(select(visible, exponent, -std::numeric_limits<double>::infinity()));
}

Tensor RecurrenceChunks::reading() const {
  return exp_where(segment_.valid() ? equal(segment_, 0.0) : Tensor(), read_);
}
Tensor RecurrenceChunks::writing() const {
  const Tensor visible = segment_.valid() ? equal(segment_, last_token(segment_)) : Tensor();
  return exp_where(visible, last_token(after_) - after_);
}
Tensor RecurrenceChunks::through() const {
  const Tensor visible = segment_.valid() ? equal(last_token(segment_), 0.0) : Tensor();
  return swap_axes(exp_where(visible, last_token(after_)), 3, 4);
}

std::vector<RecurrenceChunks::Block> RecurrenceChunks::blocks() const {
  if (shape_.scalar_decay()) return {{0, shape_.chunk}};
  std::vector<Block> result;
  for (int64_t first = 0; first < shape_.chunk; first += kSubChunk)
    result.push_back({first, std::min(shape_.chunk, first + kSubChunk)});
  return result;
}

// Are a reader of [first, end) and a writer in one segment? [chunks,B,1,readers,writers].
Tensor RecurrenceChunks::visible_pairs(int64_t first, int64_t end, int64_t writers,
                                       int64_t end_of_writers) const {
  if (!segment_.valid()) return {};
  return equal(tokens(segment_, first, end),
               swap_axes(tokens(segment_, writers, end_of_writers), 3, 4));
}

// exp of the decays between each two tokens of [first, end), 0 where the one does not read the other:
// [chunks,B,H,readers,writers,decays].
Tensor RecurrenceChunks::pair_decays(int64_t first, int64_t end) const {
  const int64_t count = end - first;
  const TensorType positions{DType::i32, {count, count}};
  const Tensor reader = iota(read_.builder(), positions, 0);
  const Tensor writer = iota(read_.builder(), positions, 1);
  Tensor visible = shape_.inclusive ? less_equal(writer, reader) : less(writer, reader);
  const Tensor together = visible_pairs(first, end, first, end);
  if (together.valid()) visible = logical_and(together, visible);
  const Tensor exponent =
      expand_dims(tokens(read_, first, end), 4) - expand_dims(tokens(after_, first, end), 3);
  return exp_where(expand_dims(visible, visible.rank()), exponent);
}

Tensor RecurrenceChunks::behind_border(const Block& block) const {
  return exp(tokens(read_, block.first, block.end) - tokens(before_, block.first, block.first + 1));
}
Tensor RecurrenceChunks::before_border(const Block& block) const {
  return exp(tokens(before_, block.first, block.first + 1) - tokens(after_, 0, block.first));
}

Tensor RecurrenceChunks::weights(const Block& block, Tensor r, Tensor k) const {
  const Tensor readers = tokens(r, block.first, block.end);
  const Tensor writers = tokens(k, block.first, block.end);
  const Tensor decays = pair_decays(block.first, block.end);
  if (shape_.scalar_decay())
    return matmul(readers, writers, {.transpose_b = true}) * squeeze(decays, 5);
  const Tensor within = reduce_sum(expand_dims(readers, 4) * expand_dims(writers, 3) * decays, {5});
  if (block.first == 0) return within;
  Tensor earlier = matmul(readers * behind_border(block),
                          tokens(k, 0, block.first) * before_border(block), {.transpose_b = true});
  const Tensor together = visible_pairs(block.first, block.end, 0, block.first);
  if (together.valid()) earlier = select(together, earlier, 0.0);
  return concat(std::vector{earlier, within}, 4);
}

RecurrenceChunks::Slopes RecurrenceChunks::slopes(const Block& block, Tensor r, Tensor k,
                                                  Tensor dweights) const {
  const Tensor readers = tokens(r, block.first, block.end);
  const Tensor writers = tokens(k, block.first, block.end);
  const Tensor decays = pair_decays(block.first, block.end);
  if (shape_.scalar_decay()) {
    const Tensor decayed = dweights * squeeze(decays, 5);
    return {matmul(decayed, writers), matmul(decayed, readers, {.transpose_a = true})};
  }
  const Tensor within =
      expand_dims(block.first == 0 ? dweights : slice(dweights, 4, block.first, block.end), 5) *
      decays;
  Slopes made{reduce_sum(within * expand_dims(writers, 3), {4}),
              reduce_sum(within * expand_dims(readers, 4), {3})};
  if (block.first == 0) return made;
  Tensor earlier = slice(dweights, 4, 0, block.first);
  const Tensor together = visible_pairs(block.first, block.end, 0, block.first);
  if (together.valid()) earlier = select(together, earlier, 0.0);
  const Tensor behind = behind_border(block);
  const Tensor before = before_border(block);
  made.r = made.r + matmul(earlier, tokens(k, 0, block.first) * before) * behind;
  const Tensor of_earlier = matmul(earlier, readers * behind, {.transpose_a = true}) * before;
  return {made.r, concat(std::vector{of_earlier, made.k}, kTokenAxis)};
}

}  // namespace fullbore
