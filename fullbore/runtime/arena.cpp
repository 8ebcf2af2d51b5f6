#include "fullbore/runtime/arena.h"

#include "fullbore/base/check.h"

namespace fullbore {

void Arena::reserve(int64_t bytes) {
  if (memory_ && bytes <= memory_->bytes()) return;
  memory_.reset();  // never both at once
  memory_ = device_.allocate(bytes);
}

void Arena::make_resident(int64_t offset, int64_t bytes) {
  FB_CHECK(offset >= 0 && offset + bytes <= this->bytes(), "{} bytes at {} of {}", bytes, offset,
           this->bytes());
  device_.make_resident(address() + offset, bytes);
}

}  // namespace fullbore
