#include "fullbore/runtime/arena.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {

TensorMemory allocate_or_throw(int64_t bytes) {
  TensorMemory memory = allocate_tensor_memory(bytes);
  if (!memory)
    throw MemoryError(fmt::format("cannot allocate {} for the arena of the step",
                                  bytes_text(static_cast<double>(bytes))));
  return memory;
}

void Arena::reserve(int64_t bytes) {
  if (bytes <= bytes_) return;
  memory_.reset();  // never both at once
  bytes_ = -1;
  memory_ = allocate_or_throw(bytes);
  bytes_ = bytes;
}

}  // namespace fullbore
