#pragma once
#include <cstdint>
#include <functional>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// What a step over a paged cache is given: the next tokens of S rows, each at its own place (nn::CacheOptions).
struct PagedInputs {
  Tensor tokens;    ///< i32 [S,T]
  Tensor position;  ///< i64 [S], place of each row's first token
  Tensor counts;    ///< i64 [S], how many of the T are the row's
  Tensor pages;     ///< i32 [S,P]
  Tensor copies;    ///< i32 [S,2], or empty: nothing is copied
  int64_t pool_pages = 0;
  DType pool_dtype = DType::f32;  ///< of keys and values in the pool
};
/// A language model over such a cache: logits f32 [S,V] of what follows each row's last token; anything for a row with
/// none.
using PagedDecodeFunction = std::function<Tensor(Trace& trace, const PagedInputs& inputs)>;

/// The pool of a program: pages, and the dtype of the keys and values in them.
struct PoolShape {
  int64_t pages = 0;
  DType dtype = DType::f32;
};

/// Tokens of a page, as nn/key_value_cache.h has it.
inline constexpr int64_t kCachePageTokens = 16;

}  // namespace fullbore
