#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace fullbore {

/// The pages of a paged cache of keys and values (nn/key_value_cache.h), by number, and how many rows have each. A page
/// without a row is free.
class PagePool {
 public:
  explicit PagePool(int32_t pages);

  /// The lowest free page, with one reference: rows that grow side by side then have theirs side by side, as a processor
  /// likes to read them. MemoryError if there is none.
  int32_t take();
  void share(int32_t page);    ///< one reference more
  void release(int32_t page);  ///< one less
  int32_t references(int32_t page) const { return references_[static_cast<size_t>(page)]; }
  int32_t pages() const { return static_cast<int32_t>(references_.size()); }
  int32_t free_pages() const { return static_cast<int32_t>(free_.size()); }

 private:
  std::vector<int32_t> references_;
  std::vector<int32_t> free_;  ///< a heap, the lowest first
};

/// The pages of one row. Rows that go on from the same tokens share the pages that hold them: the first of them to write
/// behind a page's shared tokens gets a copy of it.
class PagedRow {
 public:
  PagedRow(PagePool& pool, int64_t page_tokens) : pool_(&pool), page_tokens_(page_tokens) {}
  ~PagedRow() { clear(); }
  PagedRow(PagedRow&& other) noexcept;
  PagedRow& operator=(PagedRow&& other) noexcept;

  int64_t length() const { return length_; }  ///< tokens
  std::span<const int32_t> pages() const { return pages_; }

  /// Of what is to be copied before tokens are written: -1: nothing.
  struct Copy {
    int32_t from = -1;
    int32_t to = -1;
  };
  /// Makes room for so many tokens more, which are then there. MemoryError leaves the row as it was.
  Copy extend(int64_t tokens);
  /// Becomes a row that goes on from the first `length` tokens of another.
  void fork(const PagedRow& from, int64_t length);
  void clear();

 private:
  PagePool* pool_;
  int64_t page_tokens_;
  std::vector<int32_t> pages_;
  int64_t length_ = 0;
};

}  // namespace fullbore
