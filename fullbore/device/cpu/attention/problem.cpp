#include "fullbore/device/cpu/attention/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/ops/random.h"

namespace fullbore::cpu {
namespace {

// Keys are seen or not in blocks of so many: rows of a matmul that fill its registers.
constexpr int64_t kBlockKeys = 16;

std::vector<TensorType> input_types(const KernelRequest& request) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < request.node().inputs.size(); ++i) types.push_back(request.input(i));
  return types;
}

AttentionShape shape_of(const KernelRequest& request, size_t operands) {
  const std::vector<TensorType> types = input_types(request);
  return is_packed_attention(request.node())
             ? packed_attention_shape(types, request.node().attributes, operands)
             : AttentionShape(types, request.node().attributes, operands);
}

}  // namespace

AttentionProblem::AttentionProblem(const KernelRequest& request, size_t operands)
    : shape(shape_of(request, operands)),
      q(RowLayout::of_heads(shape.heads, shape.queries, shape.width)),
      k(RowLayout::of_heads(shape.groups, shape.keys, shape.width)),
      v(k),
      y(q),
      delta(RowLayout::of_heads(shape.heads, shape.queries, 1)),
      packed(is_packed_attention(request.node())),
      dtype(request.input(0).dtype),
      site(request.attribute<int64_t>("site")),
      row_invariant(request.row_invariant()),
      has_iteration(shape.dropout > 0 && request.node().inputs.size() > shape.source + 2) {
  if (packed) {
    const int64_t all = shape.heads + 2 * shape.groups;
    const auto heads_from = [&](int64_t heads, int64_t first) {
      return RowLayout::of_positions(heads, shape.queries, shape.width, first, all);
    };
    q = heads_from(shape.heads, 0);
    k = heads_from(shape.groups, shape.heads);
    v = heads_from(shape.groups, shape.heads + shape.groups);
    y = RowLayout::of_positions(shape.heads, shape.queries, shape.width, 0, shape.heads);
    delta = RowLayout::of_positions(shape.heads, shape.queries, 1, 0, shape.heads);
    at = {.q = 0,
          .k = 0,
          .v = 0,
          .dy = 1,
          .log_sum_exp = 2,
          .delta = 3,
          .dq = 0,
          .dk = 0,
          .dv = 0,
          .gradients = 1};
  }
  if (!shape.masked) return;
  const TensorType& mask = request.input(shape.mask);
  mask_dtype = mask.dtype;
  const auto stride = [&](int axis) {
    return mask.shape[axis] == 1 ? 0 : mask.shape.strides()[static_cast<size_t>(axis)];
  };
  mask_batch = stride(0);
  mask_head = stride(1);
  mask_query = stride(2);
}

// Tiles begin with a draw, and their loops take eight keys from each.
static_assert(kDrawElements == 8 && kTileKeys % kDrawElements == 0);

TileDraws AttentionProblem::draws(const void* const* buffers, float kept) const {
  const auto scalar = [&](size_t i) {
    uint64_t value = 0;
    std::memcpy(&value, buffers[shape.source + i], sizeof value);
    return value;
  };
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const uint64_t seed = scalar(0);
  const uint64_t high = scalar(1) + (static_cast<uint64_t>(site) << 40);
  return {.stride = low(static_cast<uint64_t>(shape.draws_of_row())),
          .words = {has_iteration ? low(scalar(2)) : 0, low(high), low(high >> 32)},
          .key = {low(seed), low(seed >> 32)},
          .threshold = static_cast<uint32_t>(dropout_threshold(shape.dropout)),
          .kept = kept};
}

std::string AttentionProblem::text() const {
  std::string text = fmt::format("{} {} x [{},{}]", dtype_name(dtype), shape.batch * shape.heads,
                                 shape.queries, shape.width);
  if (shape.keys != shape.queries) text += fmt::format(" {} keys", shape.keys);
  if (shape.groups != shape.heads) text += fmt::format(" {} groups", shape.groups);
  if (shape.causal) text += " causal";
  if (packed) text += " packed";
  if (shape.masked) text += " masked";
  if (shape.dropout > 0) text += fmt::format(" dropout {}", shape.dropout);
  if (row_invariant) text += " one chain";
  return text;
}

// Heads of a packed tensor do not follow one another: there a block is of one head.
QueryBlocks::QueryBlocks(const AttentionProblem& problem)
    : rows_(problem.shape.rows()), queries_(problem.shape.queries) {
  if (rows_ == 0) return;
  if (2 * queries_ <= kTileQueries && !problem.packed) {
    size_ = kTileQueries / queries_ * queries_;
    count_ = divide_up(rows_, size_);
  } else {
    size_ = round_up(divide_up(queries_, divide_up(queries_, kTileQueries)), kGroupQueries);
    per_head_ = divide_up(queries_, size_);
    count_ = per_head_ * (rows_ / queries_);
  }
}

QueryBlock QueryBlocks::operator[](int64_t index) const {
  if (per_head_ == 0) return {index * size_, std::min(size_, rows_ - index * size_)};
  const int64_t first = from_both_ends(index % per_head_, per_head_) * size_;
  return {index / per_head_ * queries_ + first, std::min(size_, queries_ - first)};
}

TileView view_tile(const AttentionShape& shape, const QueryBlock& block, int64_t first_key,
                   int64_t end_of_keys) {
  TileView view;
  view.first_key = first_key;
  view.keys = std::min(kTileKeys, end_of_keys - first_key);
  view.groups = block.groups();
  view.seen_by_query.fill(static_cast<float>(view.keys));
  view.seen.fill(view.keys);
  if (!shape.causal) return view;
  int64_t position = block.first % shape.queries;
  int64_t most_before = 0;
  for (int64_t group = 0; group < view.groups; ++group) {
    const auto at = static_cast<size_t>(group);
    int64_t most = 0, least = view.keys;
    const int64_t end = std::min(block.count, (group + 1) * kGroupQueries);
    for (int64_t query = group * kGroupQueries; query < end; ++query) {
      const int64_t seen = std::clamp<int64_t>(shape.visible(position) - first_key, 0, view.keys);
      if (++position == shape.queries) position = 0;
      view.seen_by_query[static_cast<size_t>(query)] = static_cast<float>(seen);
      most = std::max(most, seen);
      least = std::min(least, seen);
    }
    // Where a head ends within the block, the next one's first queries are taken to see as much.
    most_before = std::max(most_before, std::min(view.keys, round_up(most, kBlockKeys)));
    view.seen[at] = most_before;
    view.cut[at] = least < most_before;
  }
  return view;
}

}  // namespace fullbore::cpu
