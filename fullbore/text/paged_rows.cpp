#include "fullbore/text/paged_rows.h"

#include "fullbore/ops/ops.h"

namespace fullbore {

nn::CacheOptions paged_cache(const PagedInputs& inputs) {
  static_assert(kCachePageTokens == nn::kPageTokens);
  return {.position = inputs.position,
          .capacity = inputs.pages.dim(1) * nn::kPageTokens,
          .pages = inputs.pages,
          .counts = inputs.counts,
          .pool_pages = inputs.pool_pages,
          .pool_dtype = inputs.pool_dtype,
          .copies = inputs.copies};
}

Tensor last_rows(Tensor h, const PagedInputs& inputs) {
  const int64_t texts = h.dim(0), length = h.dim(1);
  const Tensor first = iota(h.builder(), {DType::i64, {texts}}, 0) * static_cast<double>(length);
  return expand_dims(gather(reshape(h, {texts * length, h.dim(2)}), first + inputs.counts - 1.0),
                     1);
}

}  // namespace fullbore
