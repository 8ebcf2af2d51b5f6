#pragma once
#include <cstdint>

namespace fullbore {

/// Allocations (malloc, calloc, realloc, aligned_alloc, operator new) of the whole process since it
/// started, libraries included. Counted by replacements of the C library's functions that are linked
/// into the test executable.
int64_t allocation_count();
/// Resident memory of this process in bytes.
int64_t resident_bytes();

}  // namespace fullbore
