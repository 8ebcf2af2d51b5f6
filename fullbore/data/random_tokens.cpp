#include "fullbore/data/random_tokens.h"

#include <cstring>

#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"

namespace fullbore {

RandomTokens::RandomTokens(int64_t vocabulary, const WindowOptions& options, uint64_t seed,
                           int64_t segments)
    : vocabulary_(vocabulary), options_(options), seed_(seed) {
  FB_CHECK(vocabulary >= 1 && options.batch_size >= 1 && options.context >= 1,
           "vocabulary {}, batch size {}, context {}", vocabulary, options.batch_size,
           options.context);
  const TensorType type{DType::i32, Shape{options.batch_size, options.context}};
  fields_ = {{"inputs", type}, {"targets", type}};
  if (segments > 0) fields_.push_back({"resets", {DType::boolean, {options.batch_size, segments}}});
}

void RandomTokens::fill(uint64_t position, std::span<void* const> buffers) const {
  const int64_t context = options_.context;
  if (fields_.size() > 2) std::memset(buffers[2], 0, static_cast<size_t>(fields_[2].type.bytes()));
  for (int64_t row = 0; row < options_.batch_size; ++row) {
    int32_t* const inputs = static_cast<int32_t*>(buffers[0]) + row * context;
    int32_t* const targets = static_cast<int32_t*>(buffers[1]) + row * context;
    const auto rows = static_cast<uint64_t>(options_.batch_size);
    PhiloxStream draws(seed_, position * rows + static_cast<uint64_t>(row));
    for (int64_t i = 0; i <= context; ++i) {
      const auto token = static_cast<int32_t>(draws.below(static_cast<uint64_t>(vocabulary_)));
      if (i < context) inputs[i] = token;
      if (i > 0) targets[i - 1] = token;
    }
  }
}

}  // namespace fullbore
