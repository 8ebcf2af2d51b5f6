#pragma once
#include <algorithm>
#include <cstdint>

#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/ops/paged_attention.h"

namespace fullbore::cpu {

/// Memory that will be read soon.
struct Stretch {
  const char* data = nullptr;
  int64_t bytes = 0;

  /// Part i of n is asked for, line by line; into the second cache where the first one would lose what is at work.
  void ask(int64_t i, int64_t n) const {
    constexpr int64_t kLine = 64, kNear = 16 << 10;
    const int64_t lines = divide_up(bytes, kLine);
    for (int64_t line = lines * i / n; line < lines * (i + 1) / n; ++line)
      if (bytes > kNear)
        __builtin_prefetch(data + line * kLine, 0, 2);
      else
        __builtin_prefetch(data + line * kLine);
  }
};

/// The places that a row sees, [first, last).
struct SeenPlaces {
  int64_t first = 0, last = 0;
  bool any() const { return first < last; }
};

/// The pages of rows in a pool of keys or values, of a node of paged_attention.
class RowPages {
 public:
  /// `pool`: which operand, keys (1) or values (2).
  RowPages(const PagedAttentionShape& shape, DType index, void* const* buffers, size_t pool)
      : shape_(shape),
        index_(index),
        pool_(static_cast<const char*>(buffers[pool])),
        pages_(buffers[3]),
        seen_(static_cast<const int64_t*>(buffers[4])),
        row_bytes_(shape.groups * shape.width * dtype_bytes(shape.pool_dtype)) {}

  SeenPlaces seen(int64_t row) const {
    const int64_t last = std::clamp<int64_t>(seen_[row], 0, shape_.places());
    const int64_t first = shape_.window > 0 ? std::max<int64_t>(0, seen_[row] - shape_.window) : 0;
    return {std::min(first, last), last};
  }

  /// The first page with places that a row sees.
  Stretch first(int64_t row) const {
    const SeenPlaces places = seen(row);
    return places.any() ? stretch(row, places.first / shape_.page_tokens, places.last) : Stretch{};
  }

  /// visit(number among them, its places or null, how many are seen of it, what is read next) for each page with places that a
  /// row sees. Pages lie anywhere: no processor finds the next one by itself. Behind the last comes `then`.
  template <class Visit>
  void for_each(int64_t row, const Stretch& then, const Visit& visit) const {
    const SeenPlaces places = seen(row);
    const int64_t begin = places.first / shape_.page_tokens;
    const int64_t end = divide_up(places.last, shape_.page_tokens);
    for (int64_t page = begin; page < end; ++page)
      visit(page - begin, data(row, page), count(page, places.last),
            page + 1 < end ? stretch(row, page + 1, places.last) : then);
  }

 private:
  // Null where there is no such page.
  const char* data(int64_t row, int64_t page) const {
    const int64_t number = with_index(index_, [&](auto index) {
      const auto* numbers = static_cast<const decltype(index)*>(pages_);
      return static_cast<int64_t>(
          numbers[row * shape_.pages + page]);  // NOLINT(bugprone-signed-char-misuse)
    });
    const bool there = number >= 0 && (number + 1) * shape_.page_tokens <= shape_.pool;
    return there ? pool_ + number * shape_.page_tokens * row_bytes_ : nullptr;
  }
  int64_t count(int64_t page, int64_t last) const {
    return std::min(last - page * shape_.page_tokens, shape_.page_tokens);
  }
  Stretch stretch(int64_t row, int64_t page, int64_t last) const {
    const char* const at = data(row, page);
    return at ? Stretch{at, count(page, last) * row_bytes_} : Stretch{};
  }

  const PagedAttentionShape& shape_;
  DType index_;
  const char* pool_;
  const void* pages_;
  const int64_t* seen_;
  int64_t row_bytes_;
};

}  // namespace fullbore::cpu
