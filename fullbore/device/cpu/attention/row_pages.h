#pragma once
#include <algorithm>
#include <cstdint>

#include "fullbore/device/cpu/attention/stretch.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/ops/paged_attention.h"

namespace fullbore::cpu {

/// The places that a row sees, [first, last).
struct SeenPlaces {
  int64_t first = 0, last = 0;
  bool any() const { return first < last; }
};

/// Rows [begin, end), whose pages are read together.
struct RowRange {
  int64_t begin = 0, end = 0;
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

  /// Do both rows begin with the same page? So do completions of one prompt.
  bool begin_alike(int64_t a, int64_t b) const {
    if (!seen(a).any() || !seen(b).any() || begin(a) != begin(b)) return false;
    const char* const page = data(a, begin(a));
    return page && page == data(b, begin(b));
  }

 private:
  friend class PageWalk;

  int64_t begin(int64_t row) const { return seen(row).first / shape_.page_tokens; }
  /// Of the pages with places that a row sees.
  int64_t count(int64_t row) const {
    const SeenPlaces places = seen(row);
    return places.any() ? divide_up(places.last, shape_.page_tokens) - begin(row) : 0;
  }
  /// How many places are seen of page `number` among those.
  int64_t seen_of(int64_t row, int64_t number) const {
    return std::min(seen(row).last - (begin(row) + number) * shape_.page_tokens,
                    shape_.page_tokens);
  }
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
  Stretch stretch(int64_t row, int64_t number) const {
    const char* const at = data(row, begin(row) + number);
    return at ? Stretch{at, seen_of(row, number) * row_bytes_} : Stretch{};
  }

  const PagedAttentionShape& shape_;
  DType index_;
  const char* pool_;
  const void* pages_;
  const int64_t* seen_;
  int64_t row_bytes_;
};

/// Goes to each page with places that some rows see: the first ones of all rows, then the second ones ..., so that what several
/// rows have in common is read while it is near.
class PageWalk {
 public:
  PageWalk(const RowPages& pages, RowRange rows) : pages_(&pages), rows_(rows), row_(rows.begin) {
    for (int64_t row = rows.begin; row < rows.end; ++row) most_ = std::max(most_, pages.count(row));
    find();
  }

  bool ended() const { return number_ >= most_; }
  void go_on() {
    ++row_;
    find();
  }

  int64_t row() const { return row_; }
  int64_t number() const { return number_; }  ///< of the page, among those of the row
  /// Null where there is no such page.
  const char* data() const { return pages_->data(row_, pages_->begin(row_) + number_); }
  int64_t places() const { return pages_->seen_of(row_, number_); }  ///< that are seen of it
  Stretch stretch() const { return pages_->stretch(row_, number_); }

 private:
  void find() {
    for (; number_ < most_; ++number_, row_ = rows_.begin)
      for (; row_ < rows_.end; ++row_)
        if (number_ < pages_->count(row_)) return;
  }

  const RowPages* pages_;
  RowRange rows_;
  int64_t row_, number_ = 0, most_ = 0;
};

/// visit(walk, what is to be asked for) at each page of a walk. Pages lie anywhere: no processor finds the next one by itself. So
/// some are asked for ahead, at the end of the walk those of the next one.
template <class Visit>
void for_each_page(PageWalk walk, const PageWalk& then, int64_t ahead, const Visit& visit) {
  PageWalk later = walk;
  bool is_behind = false;
  const char* asked = nullptr;
  const auto go_on = [&] {
    if (!later.ended()) later.go_on();
    if (!later.ended() || is_behind) return;
    later = then;
    is_behind = true;
  };
  for (int64_t i = 0; i < ahead; ++i) go_on();
  for (; !walk.ended(); walk.go_on(), go_on()) {
    Stretch next = later.ended() ? Stretch{} : later.stretch();
    if (next.data == asked) next = {};
    if (next.data) asked = next.data;
    visit(walk, next);
  }
}

}  // namespace fullbore::cpu
