#pragma once
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// Keys and values of the tokens before, kept from step to step: text is continued without computing
/// them again.
struct CacheOptions {
  Tensor position = {};  ///< i64[]: place of x's first token; position + T must not pass capacity
  int64_t capacity = 0;  ///< most tokens there can be
  /// i32 [B]: which row each sequence goes on from, as a beam search wants it; none: its own.
  Tensor rows = {};
};

/// The State `<scope>.cache.<name>` [B,H,capacity,D], role stream, with `rows` [B,H,T,D] written at the position.
Tensor extend_cache(Trace& trace, const char* name, Tensor rows, const CacheOptions& options,
                    SourceLoc loc = SourceLoc::here());

/// bool [1,1,T,capacity]: query t, at place position + t, sees the places up to its own, and of those the last
/// `window`; 0: all.
Tensor visible_places(int64_t length, const CacheOptions& options, int64_t window = 0);
/// bool [1,1,T,T]: the same without a cache.
Tensor visible_window(GraphBuilder& builder, int64_t length, int64_t window);
/// bool [B,1,1,S]: the places from first to before end, i32 [B] each, of rows of different lengths: [first, end) of
/// each row holds its tokens, the rest is padding. Either may be left empty.
Tensor places_between(Tensor first, Tensor end, int64_t places, SourceLoc loc = SourceLoc::here());
/// What both masks let pass; an empty one lets everything pass.
Tensor both_masks(Tensor a, Tensor b);

}  // namespace fullbore::nn
