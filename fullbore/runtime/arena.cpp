#include "fullbore/runtime/arena.h"

namespace fullbore {

void Arena::reserve(int64_t bytes) {
  if (memory_ && bytes <= memory_->bytes()) return;
  memory_.reset();  // never both at once
  memory_ = device_.allocate(bytes);
}

}  // namespace fullbore
