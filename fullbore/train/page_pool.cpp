#include "fullbore/train/page_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {

PagePool::PagePool(int32_t pages) : references_(static_cast<size_t>(pages), 0) {
  for (int32_t page = 0; page < pages; ++page) free_.push_back(page);
}

int32_t PagePool::take() {
  if (free_.empty())
    throw MemoryError(fmt::format("all {} pages of keys and values are taken", pages()));
  std::ranges::pop_heap(free_, std::greater{});
  const int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  FB_CHECK(page >= 0 && page < pages() && references(page) > 0, "page {} is free", page);
  ++references_[static_cast<size_t>(page)];
}

void PagePool::release(int32_t page) {
  FB_CHECK(page >= 0 && page < pages() && references(page) > 0, "page {} is free", page);
  if (--references_[static_cast<size_t>(page)] != 0) return;
  free_.push_back(page);
  std::ranges::push_heap(free_, std::greater{});
}

PagedRow::PagedRow(PagedRow&& other) noexcept
    : pool_(other.pool_),
      page_tokens_(other.page_tokens_),
      pages_(std::exchange(other.pages_, {})),
      length_(std::exchange(other.length_, 0)) {}

PagedRow& PagedRow::operator=(PagedRow&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(page_tokens_, other.page_tokens_);
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  return *this;
}

PagedRow::Copy PagedRow::extend(int64_t tokens) {
  if (tokens <= 0) return {};
  const auto had = static_cast<int64_t>(pages_.size());
  const int64_t needed = (length_ + tokens + page_tokens_ - 1) / page_tokens_;
  // The page that is written to first, if it is partly filled and others have it too.
  const int64_t open = length_ / page_tokens_;
  const bool copies = open < had && pool_->references(pages_[static_cast<size_t>(open)]) > 1;
  if (needed - had + (copies ? 1 : 0) > pool_->free_pages())
    throw MemoryError(fmt::format("{} pages of keys and values are free of {}, {} are needed",
                                  pool_->free_pages(), pool_->pages(),
                                  needed - had + (copies ? 1 : 0)));
  Copy copy;
  if (copies) {
    int32_t& page = pages_[static_cast<size_t>(open)];
    copy = {page, pool_->take()};
    pool_->release(page);
    page = copy.to;
  }
  while (static_cast<int64_t>(pages_.size()) < needed) pages_.push_back(pool_->take());
  length_ += tokens;
  return copy;
}

void PagedRow::fork(const PagedRow& from, int64_t length) {
  FB_CHECK(&from != this && length >= 0 && length <= from.length_, "{} tokens of {}", length,
           from.length_);
  clear();
  for (int64_t page = 0; page * page_tokens_ < length; ++page) {
    pages_.push_back(from.pages_[static_cast<size_t>(page)]);
    pool_->share(pages_.back());
  }
  length_ = length;
}

void PagedRow::clear() {
  for (const int32_t page : pages_) pool_->release(page);
  pages_.clear();
  length_ = 0;
}

}  // namespace fullbore
