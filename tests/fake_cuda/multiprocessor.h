#pragma once
#include <cstdint>

#include "tests/support/ptx/module.h"

namespace fullbore::fake_cuda {

/// What a multiprocessor holds at once.
struct Multiprocessor {
  int threads, blocks, registers;
};
/// Source: NVIDIA, "CUDA C++ Programming Guide", technical specifications by compute capability.
Multiprocessor multiprocessor(int64_t capability);

/// Of each block, beside what it asks for.
inline constexpr int kReservedSharedBytes = 1024;

/// Of a thread. A compiler would need fewer than PTX names, and as many blocks as a kernel's launches promise have to fit: blocks
/// of 1024 threads, where they promise nothing.
int registers_of(const ptx::Kernel& kernel);

/// Blocks of a kernel on a multiprocessor with `shared_bytes`, at once.
int resident_blocks(const ptx::Kernel& kernel, int threads, int64_t dynamic_shared_bytes,
                    int64_t capability, int64_t shared_bytes);

}  // namespace fullbore::fake_cuda
