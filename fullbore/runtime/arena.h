#pragma once
#include <cstdint>

#include "fullbore/base/tensor_memory.h"

namespace fullbore {

/// Zeroed memory for a program (base/tensor_memory.h). MemoryError if there is none.
TensorMemory allocate_or_throw(int64_t bytes);

/// Working memory. Programs that never run at the same time may share one: nothing in it outlives a
/// run, so it is as large as the largest of them needs.
class Arena {
 public:
  /// At least so many bytes; what was there is lost, and may lie elsewhere.
  void reserve(int64_t bytes);
  char* data() const { return memory_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  TensorMemory memory_;
  int64_t bytes_ = -1;
};

}  // namespace fullbore
