#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace fullbore {

struct FreeTensorMemory {
  size_t mapped_bytes = 0;  ///< 0: of the heap
  void operator()(char* memory) const;
};
using TensorMemory = std::unique_ptr<char, FreeTensorMemory>;

/// Zeroed memory of at least `bytes`, aligned to 64 bytes. Null if there is none. From 4 MiB on it is
/// mapped for itself, aligned to and, if the system grants that, in pages of 2 MiB, so that walks over
/// weights and activations do not outrun the table of translations. Those pages are cleared by the
/// system when they are first written: by the threads that need them, and never for nothing. That may
/// take half a second per gigabyte, and several in a virtual machine.
TensorMemory allocate_tensor_memory(int64_t bytes);

/// Whether what is not yet there of that memory comes in pages of 2 MiB, where the system grants that, or in small ones:
/// where short pieces far apart are all that is written, a large page around each is memory for nothing. Whole blocks
/// of 2 MiB within it alone, and nothing below 4 MiB. Contents stay.
void choose_pages(char* memory, int64_t bytes, bool large);

/// Is there nothing but zeros? Where nothing was ever written that takes no memory.
bool is_zero(const char* memory, int64_t bytes);

/// Copies what is not soon read again: the processor's caches keep what they hold, and lines that will be
/// overwritten whole are not read from memory first.
void copy_past_caches(char* to, const char* from, int64_t bytes);

/// Meets the page that `memory` lies in, if nobody has, and leaves its contents: whoever writes there next
/// does not wait.
inline void meet_page(char* memory) {
  volatile char* const byte = memory;
  *byte = *byte;
}

}  // namespace fullbore
