#include "fullbore/nn/key_value_cache.h"

#include <fmt/format.h>

#include <string>

#include "fullbore/base/error.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/ops/update_rows.h"

namespace fullbore::nn {
namespace {

// Query t is at place queries + t.
Tensor within_window(Tensor places, Tensor queries, int64_t window) {
  return greater(places, queries - static_cast<double>(window));
}

// i32 [...] pages -> i64 [..., kPageTokens]: their places in the pool; below 0 where there is no page.
Tensor places_of(Tensor pages) {
  const Shape shape = pages.shape().inserted(pages.rank(), kPageTokens);
  const Tensor within = iota(pages.builder(), {DType::i64, shape}, pages.rank());
  const Tensor first =
      expand_dims(cast(pages, DType::i64), pages.rank()) * static_cast<double>(kPageTokens);
  return select(less(first, 0.0), -1.0, first + within);
}

// i64 [B,T]: where in the pool the tokens go; -1: nowhere.
Tensor written_places(const CacheOptions& options, int64_t length) {
  const int64_t batch = options.pages.dim(0);
  const Tensor token = iota(options.pages.builder(), {DType::i64, {batch, length}}, 1);
  const Tensor places = token + expand_dims(options.position, 1);
  const Tensor number = shift_right(places, 4.0);
  static_assert(kPageTokens == 1 << 4);
  const Tensor inside = logical_and(less(token, expand_dims(options.counts, 1)),
                                    less(places, static_cast<double>(options.capacity)));
  const Tensor page =
      cast(take_along_axis(options.pages, select(inside, number, 0.0), 1), DType::i64);
  const Tensor place = page * static_cast<double>(kPageTokens) +
                       bit_and(places, static_cast<double>(kPageTokens - 1));
  return select(logical_and(inside, greater_equal(page, 0.0)), place, -1.0);
}

// The pool with tokens [B,T,W] at their places, in its own dtype.
Tensor write_pages(Trace& trace, const std::string& name, Tensor tokens,
                   const CacheOptions& options, SourceLoc loc) {
  const int64_t batch = tokens.dim(0), length = tokens.dim(1);
  const DType dtype = options.pool_dtype.value_or(tokens.dtype());
  const Tensor pool =
      trace.state(name, Role::recurrent, {dtype, {options.pool_pages * kPageTokens, tokens.dim(2)}},
                  Initializer::zeros(), loc);
  Tensor next = pool;
  if (options.copies.valid()) {
    const auto column = [&](int64_t at) {
      return places_of(reshape(slice(options.copies, 1, at, at + 1, 1, loc), {batch}, loc));
    };
    next = update_rows(next, gather(next, column(0), loc), column(1), loc);
  }
  if (tokens.dtype() != dtype) tokens = cast(tokens, dtype, loc);
  next = update_rows(next, tokens, written_places(options, length), loc);
  trace.update(pool, next);
  return next;
}

Tensor extend_pages(Trace& trace, const std::string& name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc) {
  const int64_t batch = rows.dim(0), heads = rows.dim(1), length = rows.dim(2), width = rows.dim(3);
  const Tensor tokens = reshape(transpose(rows, {0, 2, 1, 3}, loc), {batch, length, heads * width});
  const Tensor next = write_pages(trace, name, tokens, options, loc);
  const Tensor seen =
      gather(next, reshape(places_of(options.pages), {batch, options.capacity}), loc);
  const Tensor mine =
      transpose(reshape(seen, {batch, options.capacity, heads, width}, loc), {0, 2, 1, 3}, loc);
  return mine.dtype() == rows.dtype() ? mine : cast(mine, rows.dtype(), loc);
}

}  // namespace

void check_cache(const CacheOptions& options, int64_t batch, SourceLoc loc) {
  if (!options.pages.valid()) return;
  const auto require = [&](bool fits, const char* name, const std::string& wanted, Tensor x) {
    if (!fits)
      throw UsageError(fmt::format("paged cache: needs {} {}, got {}", name, wanted,
                                   x.valid() ? x.type().text() : "none"),
                       loc);
  };
  const int64_t pages = options.pages.rank() == 2 ? options.pages.dim(1) : 0;
  require(options.pages.type() == TensorType{DType::i32, {batch, pages}} && pages > 0, "pages",
          fmt::format("i32[{},P]", batch), options.pages);
  require(options.position.type() == TensorType{DType::i64, {batch}}, "position",
          fmt::format("i64[{}]", batch), options.position);
  require(options.counts.valid() && options.counts.type() == TensorType{DType::i64, {batch}},
          "counts", fmt::format("i64[{}]", batch), options.counts);
  require(!options.copies.valid() || options.copies.type() == TensorType{DType::i32, {batch, 2}},
          "copies", fmt::format("i32[{},2]", batch), options.copies);
  require(!options.rows.valid(), "rows", "none", options.rows);
  if (options.capacity != pages * kPageTokens || options.pool_pages < 1)
    throw UsageError(
        fmt::format("paged cache: {} pages of {} tokens in a pool of {} are no capacity of {}",
                    pages, kPageTokens, options.pool_pages, options.capacity),
        loc);
}

Tensor extend_cache(Trace& trace, const char* name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc) {
  const std::string state = trace.builder().scope() + ".cache." + name;
  if (options.pages.valid()) return extend_pages(trace, state, rows, options, loc);
  const TensorType type{rows.dtype(), rows.shape().with(2, options.capacity)};
  const Tensor cache = trace.state(state, Role::recurrent, type, Initializer::zeros(), loc);
  const Tensor before = options.rows.valid() ? gather(cache, options.rows, loc) : cache;
  const Tensor extended = dynamic_update_slice(before, rows, options.position, 2, loc);
  trace.update(cache, extended);
  return extended;
}

Tensor visible_places(int64_t length, const CacheOptions& options, int64_t window) {
  const bool paged = options.pages.valid();
  const int64_t batch = paged ? options.pages.dim(0) : 1;
  const TensorType type{DType::i64, {batch, 1, length, options.capacity}};
  GraphBuilder& builder = options.position.builder();
  const Tensor places = iota(builder, type, 3);
  const Tensor first = paged ? reshape(options.position, {batch, 1, 1, 1}) : options.position;
  const Tensor queries = iota(builder, type, 2) + first;
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

// One token of each row: keys and values are read where they lie.
Tensor attend_pages(Trace& trace, Tensor qkv, const HeadsOptions& options, SourceLoc loc) {
  const int64_t batch = qkv.dim(0), width = qkv.dim(3);
  const int64_t heads = options.heads, groups = options.groups;
  const std::string scope = trace.builder().scope() + ".cache.";
  const auto pool = [&](const char* name, int64_t first) {
    const Tensor rows =
        reshape(slice(qkv, 2, first, first + groups, 1, loc), {batch, 1, groups * width}, loc);
    return write_pages(trace, scope + name, rows, options.cache, loc);
  };
  const Tensor keys = pool("keys", heads), values = pool("values", heads + groups);
  const Tensor q = reshape(slice(qkv, 2, 0, heads, 1, loc), {batch, heads, width}, loc);
  // A row without a token sees nothing.
  const Tensor seen = select(greater(options.cache.counts, 0.0), options.cache.position + 1.0, 0.0);
  const Tensor mixed = paged_attention(q, keys, values, options.cache.pages, seen,
                                       {.groups = groups,
                                        .page_tokens = kPageTokens,
                                        .window = options.window,
                                        .scale = options.attention.scale},
                                       loc);
  return reshape(mixed, {batch, 1, heads, width}, loc);
}

}  // namespace

Tensor attend_heads(Trace& trace, Tensor qkv, const HeadsOptions& options, SourceLoc loc) {
  const int64_t length = qkv.dim(1), heads = options.heads, groups = options.groups;
  const int64_t before = options.before.places();
  if (options.cache.pages.valid() && length == 1 && before == 0 && !options.mask.valid() &&
      options.attention.dropout == 0)
    return attend_pages(trace, qkv, options, loc);
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
    CacheOptions kept = options.cache;  // with what stands before, of rows that have tokens
    if (before > 0 && kept.counts.valid())
      kept.counts =
          select(greater(kept.counts, 0.0), kept.counts + static_cast<double>(before), 0.0);
    keys = extend_cache(trace, "keys", keys, kept, loc);
    values = extend_cache(trace, "values", values, kept, loc);
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
