#include "fullbore/runtime/arena.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

void Arena::reserve(int64_t bytes) {
  if (memory_ && bytes <= memory_->bytes()) return;
  for (const User* const user : users_) user->leave_();
  memory_.reset();  // never both at once
  memory_ = device_.allocate(bytes);
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
