#include "fullbore/nn/key_value_cache.h"

#include <fmt/format.h>

#include <string>

#include "fullbore/base/error.h"
#include "fullbore/ops/ops.h"

namespace fullbore::nn {
namespace {

// Query t is at place queries + t.
Tensor within_window(Tensor places, Tensor queries, int64_t window) {
  return greater(places, queries - static_cast<double>(window));
}

}  // namespace

Tensor extend_cache(Trace& trace, const char* name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc) {
  const TensorType type{rows.dtype(), rows.shape().with(2, options.capacity)};
  const Tensor cache = trace.state(trace.builder().scope() + ".cache." + name, Role::recurrent,
                                   type, Initializer::zeros(), loc);
  const Tensor before = options.rows.valid() ? gather(cache, options.rows, loc) : cache;
  const Tensor extended = dynamic_update_slice(before, rows, options.position, 2, loc);
  trace.update(cache, extended);
  return extended;
}

Tensor visible_places(int64_t length, const CacheOptions& options, int64_t window) {
  const TensorType type{DType::i64, {1, 1, length, options.capacity}};
  GraphBuilder& builder = options.position.builder();
  const Tensor places = iota(builder, type, 3);
  const Tensor queries = iota(builder, type, 2) + options.position;
  const Tensor earlier = less_equal(places, queries);
  return window == 0 ? earlier : logical_and(earlier, within_window(places, queries, window));
}

Tensor visible_window(GraphBuilder& builder, int64_t length, int64_t window, int64_t before) {
  const TensorType type{DType::i64, {1, 1, length, before + length}};
  const Tensor places = iota(builder, type, 3);
  const Tensor queries = iota(builder, type, 2) + static_cast<double>(before);
  return logical_and(less_equal(places, queries), within_window(places, queries, window));
}

Tensor places_between(Tensor first, Tensor end, int64_t places, SourceLoc loc) {
  const auto column = [&](Tensor x, const char* name) {
    if (x.rank() != 1)
      throw UsageError(fmt::format("places_between: needs {} [B], got {}", name, x.type().text()),
                       loc);
    return reshape(x, {x.dim(0), 1, 1, 1}, loc);
  };
  const auto place = [&](Tensor like) {
    return iota(like.builder(), {like.dtype(), {1, 1, 1, places}}, 3, loc);
  };
  Tensor mask;
  if (first.valid()) mask = greater_equal(place(first), column(first, "first"));
  if (end.valid()) mask = both_masks(mask, less(place(end), column(end, "end")));
  return mask;
}

namespace {

// A mask of T keys behind P that all see: [..., T] -> [..., P + T].
Tensor behind_places(Tensor mask, int64_t before, SourceLoc loc) {
  if (before == 0 || !mask.valid()) return mask;
  const Tensor places = iota(mask.builder(), {DType::i64, mask.shape().with(3, before)}, 3, loc);
  const Tensor parts[] = {greater_equal(places, 0.0), mask};
  return concat(parts, 3, loc);
}

Tensor joined(Tensor before, Tensor rows, SourceLoc loc) {
  if (!before.valid()) return rows;
  const Tensor parts[] = {cast(before, rows.dtype(), loc), rows};
  return concat(parts, 2, loc);
}

}  // namespace

Tensor attend_heads(Trace& trace, Tensor qkv, const HeadsOptions& options, SourceLoc loc) {
  const int64_t length = qkv.dim(1), heads = options.heads, groups = options.groups;
  const int64_t before = options.before.places();
  const Tensor heads_first = transpose(qkv, {0, 2, 1, 3}, loc);
  const auto part = [&](int64_t first, int64_t count) {
    return slice(heads_first, 1, first, first + count, 1, loc);
  };
  Tensor keys = joined(options.before.keys, part(heads, groups), loc);
  Tensor values = joined(options.before.values, part(heads + groups, groups), loc);
  AttentionOptions attention_options = options.attention;
  if (options.cache.position.valid()) {
    CacheOptions of_queries = options.cache;
    if (before > 0) of_queries.position = of_queries.position + static_cast<double>(before);
    attention_options.mask =
        both_masks(visible_places(length, of_queries, options.window), options.mask);
    keys = extend_cache(trace, "keys", keys, options.cache, loc);
    values = extend_cache(trace, "values", values, options.cache, loc);
  } else {
    attention_options.causal = true;
    attention_options.mask = behind_places(options.mask, before, loc);
    if (options.window > 0 && options.window < before + length)
      attention_options.mask = both_masks(
          visible_window(trace.builder(), length, options.window, before), attention_options.mask);
  }
  return transpose(attention(part(0, heads), keys, values, attention_options, loc), {0, 2, 1, 3},
                   loc);
}

Tensor both_masks(Tensor a, Tensor b) {
  if (!a.valid()) return b;
  return b.valid() ? logical_and(a, b) : a;
}

}  // namespace fullbore::nn
