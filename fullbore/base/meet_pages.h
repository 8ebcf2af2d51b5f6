#pragma once
#include <cstdint>

#include "fullbore/base/threads.h"

namespace fullbore {

/// Meets all pages of that memory (base/tensor_memory.h), each worker a part, and leaves the contents.
void meet_pages(char* memory, int64_t bytes, ThreadPool& pool);

}  // namespace fullbore
