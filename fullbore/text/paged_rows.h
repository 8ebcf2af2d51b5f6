#pragma once
#include "fullbore/nn/key_value_cache.h"
#include "fullbore/train/paged_decode.h"

namespace fullbore {

/// The cache that the inputs of a step over a paged one say.
nn::CacheOptions paged_cache(const PagedInputs& inputs);

/// Of h [S,T,C] the row of each text's last token, [S,1,C]; any for a text with none.
Tensor last_rows(Tensor h, const PagedInputs& inputs);

}  // namespace fullbore
