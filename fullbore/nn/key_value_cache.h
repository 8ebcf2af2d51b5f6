#pragma once
#include <cstdint>
#include <optional>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// Tokens of a page of a paged cache.
inline constexpr int64_t kPageTokens = 16;

/// Keys and values of the tokens before, kept from step to step: text is continued without computing
/// them again.
///
/// A paged cache is one pool of pages for all rows, in which each row has pages of its own or shares them with others
/// (train/page_pool.h), so that rows may be of any lengths: Kwon et al. 2023, arXiv:2309.06180, section 4.
struct CacheOptions {
  /// i64[]: place of x's first token; position + T must not pass capacity. Paged: i64 [B], of each row.
  Tensor position = {};
  int64_t capacity = 0;  ///< most tokens there can be
  /// i32 [B]: which row each sequence goes on from, as a beam search wants it; none: its own.
  Tensor rows = {};

  // Of a paged cache, whose capacity is P kPageTokens.
  Tensor pages = {};  ///< i32 [B,P]: the pages of each row in order; -1: none
  Tensor counts =
      {};  ///< i64 [B]: how many of the T tokens are the row's; padding behind them is not kept
  int64_t pool_pages = 0;  ///< of all rows
  /// What the pool keeps keys and values in: they are rounded to it once, as they are written. None: what they are.
  std::optional<DType> pool_dtype = {};
  /// i32 [B,2]: a page of which a copy is made before anything is written, and the page that becomes it; -1: none. A row
  /// that is to write to a page that it shares needs one (PagedRow::extend()). Without it nothing is copied.
  Tensor copies = {};
};

/// Keys and values [B,G,P,D] that stand before those of the tokens in a row, as they are: not turned by position.
struct KeyValues {
  Tensor keys = {};
  Tensor values = {};
  bool valid() const { return keys.valid(); }
  int64_t places() const { return valid() ? keys.dim(2) : 0; }
};

/// UsageError: shapes of a paged cache that do not fit `batch` rows. Nothing of another cache.
void check_cache(const CacheOptions& options, int64_t batch, SourceLoc loc);

/// The State `<scope>.cache.<name>` [B,H,capacity,D], role recurrent, with `rows` [B,H,T,D] written at the position.
/// Paged: State [pool_pages kPageTokens, H D] of the pool's dtype, of which the pages of each row are given,
/// [B,H,capacity,D] of the rows' dtype.
Tensor extend_cache(Trace& trace, const char* name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc = SourceLoc::here());

/// bool [1,1,T,capacity], paged [B,1,T,capacity]: query t, at place position + t, sees the places up to its own, and of
/// those the last `window`; 0: all.
Tensor visible_places(int64_t length, const CacheOptions& options, int64_t window = 0);
/// bool [1,1,T,P + T]: the same without a cache, behind P places.
Tensor visible_window(GraphBuilder& builder, int64_t length, int64_t window, int64_t before = 0);
/// bool [B,1,1,S]: the places from first to before end, i32 [B] each, of rows of different lengths: [first, end) of
/// each row holds its tokens, the rest is padding. Either may be left empty.
Tensor places_between(Tensor first, Tensor end, int64_t places, SourceLoc loc = SourceLoc::here());
/// Attention of heads as projections give them: qkv [B,T,H + 2 G,D], H of queries, then G of keys, then G of values
/// -> [B,T,H,D]. Each token sees itself, the tokens before it, what the cache holds, and before all of them `before`, which a
/// cache holds too from then on, at the first P of its places from the position on.
struct HeadsOptions {
  int64_t heads = 1;   ///< H
  int64_t groups = 1;  ///< G
  int64_t window =
      0;  ///< of so many places the last are seen, one's own too; 0: all. Those of `before` count.
  Tensor mask = {};  ///< bool [B or 1,H or 1,T or 1,S] besides; S: T, or the cache's capacity
  CacheOptions cache = {};
  KeyValues before = {};
  AttentionOptions attention = {};  ///< scale and dropout
};
Tensor attend_heads(Trace& trace, Tensor qkv, const HeadsOptions& options,
                    SourceLoc loc = SourceLoc::here());

/// What both masks let pass; an empty one lets everything pass.
Tensor both_masks(Tensor a, Tensor b);

}  // namespace fullbore::nn
