#pragma once
#include <string>

namespace fullbore::jit {

/// What code is generated for.
struct CodegenTarget {
  std::string cpu;       ///< LLVM's name, "cascadelake"
  std::string features;  ///< LLVM's list, "+avx512f,-amx-bf16,..."
  int vector_bytes = 16;
  bool avx512 =
      false;  ///< F, BW, VL and DQ: vectors of 64 bytes, masked accesses in one instruction
  bool rounds_to_bf16 = false;  ///< in one instruction (AVX512_BF16)
  bool quick = false;           ///< code that is soon made, however slow
  std::string text() const { return cpu + " " + features + (quick ? " quick" : ""); }
};
/// For this_processor(): of the machine itself, or for any processor of the level it is lowered to.
CodegenTarget host_target();

}  // namespace fullbore::jit
