#pragma once
#include <cstring>
#include <new>
#include <vector>

#include "fullbore/base/tensor_memory.h"

namespace fullbore {

/// The values in memory that a program may read as a field of its batch. std::bad_alloc.
template <class T>
TensorMemory aligned_copy(const std::vector<T>& values) {
  TensorMemory memory = allocate_tensor_memory(static_cast<int64_t>(values.size() * sizeof(T)));
  if (!memory) throw std::bad_alloc();
  if (!values.empty()) std::memcpy(memory.get(), values.data(), values.size() * sizeof(T));
  return memory;
}

}  // namespace fullbore
