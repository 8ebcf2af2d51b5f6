#pragma once
#include <cstdint>
#include <memory>

namespace fullbore {

struct FreeTensorMemory {
  void operator()(char* memory) const;
};
using TensorMemory = std::unique_ptr<char, FreeTensorMemory>;

/// Zeroed memory of at least `bytes`, aligned to 64 bytes, every page of it met: later accesses fault
/// no more. From 4 MiB on it is aligned to, and asks the system for, pages of 2 MiB, so that walks over
/// weights and activations do not outrun the table of translations. Null if there is none.
TensorMemory allocate_tensor_memory(int64_t bytes);

}  // namespace fullbore
