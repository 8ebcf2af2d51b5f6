#include "fullbore/runtime/arena.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

void Arena::reserve(int64_t bytes) {
  if (memory_ && bytes <= memory_->bytes()) return;
  for (const User* const user : users_) user->leave_();
  memory_.reset();  // never both at once
  memory_ = device_.allocate(bytes);
  tell_expected_writes();
}

void Arena::expect_writes(std::span<const ByteRange> ranges) {
  std::vector<ByteRange> all = written_;
  all.insert(all.end(), ranges.begin(), ranges.end());
  all = merged(std::move(all));
  if (all == written_) return;
  written_ = std::move(all);
  tell_expected_writes();
}

void Arena::tell_expected_writes() {
  if (!memory_ || written_.empty()) return;
  const auto tell = [&](int64_t begin, int64_t end, Extent extent) {
    end = std::min(end, bytes());
    if (begin < end) device_.expect_writes(address() + begin, end - begin, extent);
  };
  int64_t told = 0;
  for (const ByteRange& range : written_) {
    tell(told, range.begin, Extent::pieces);
    tell(range.begin, range.end, Extent::whole);
    told = range.end;
  }
  tell(told, bytes(), Extent::pieces);
}

void Arena::make_resident(int64_t offset, int64_t bytes) {
  FB_CHECK(offset >= 0 && offset + bytes <= this->bytes(), "{} bytes at {} of {}", bytes, offset,
           this->bytes());
  device_.make_resident(address() + offset, bytes);
}

Arena::User::User(std::shared_ptr<Arena> arena, std::function<void()> leave)
    : arena_(std::move(arena)), leave_(std::move(leave)) {
  arena_->users_.push_back(this);
}
Arena::User::~User() { std::erase(arena_->users_, this); }

}  // namespace fullbore
