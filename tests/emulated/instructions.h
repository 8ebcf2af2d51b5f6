// The instructions that the emulated <immintrin.h> computes, each behind one signature, so that they can be held against the
// processor's own (test_instructions.cpp).
#pragma once
#include <cstddef>
#include <cstdint>

namespace fullbore::emulated {

/// Three registers of 64 bytes, and what masked instructions are given.
struct alignas(64) Operands {
  uint8_t a[64], b[64], c[64];
  uint64_t mask;
};
/// All that an instruction may write: zero before, so that what a mask leaves alone is seen.
struct alignas(64) Written {
  uint8_t bytes[16 * 64];
};
/// How results are compared: NaNs of one kind equal one another, for which operand's payload goes on is the compiler's choice.
enum class Kind { kBits, kFloat, kDouble };
/// What /proc/cpuinfo calls the extension beyond AVX-512F, BW, DQ and VL.
enum class Extension { kAvx512, kBf16, kVnni, kAvxVnni, kAmx };

struct Instruction {
  const char* name;
  Kind kind;
  Extension extension;
  void (*run)(const Operands&, Written&);
};
struct Instructions {
  const Instruction* first;
  size_t count;
};

Instructions of_processor();
Instructions computed();

}  // namespace fullbore::emulated
