#pragma once
#include <cstdint>
#include <span>

#include "fullbore/device/cpu/gemm/prefetcher.h"

namespace fullbore::cpu {

/// 32 elements of depth of a matmul: where their operands lie, in bytes from those of the first.
struct AmxStep {
  int64_t a = 0;
  int64_t b = 0;
};

/// c[rows, columns] = or += sum over steps of a[rows, 32] b[32, columns], bf16 with f32 sums: rows and columns in whole
/// tiles of 16. a: 32 elements beside each other; b: VNNI pairs, 16 rows of columns. Distances are in bytes.
struct AmxProduct {
  int64_t rows = 0;
  int64_t columns = 0;
  std::span<const AmxStep> steps;
  const char* a = nullptr;
  int64_t a_row = 0;
  const char* b = nullptr;
  int64_t b_row = 0;
  float* c = nullptr;
  int64_t c_row = 0;  ///< in elements
  bool goes_on = false;
  /// What is asked for meanwhile, so many lines of it in each step for two rows of tiles, or none.
  Prefetcher* prefetcher = nullptr;
  int asks = 0;
};

/// While one lives, its thread's tiles are shaped for matmuls. this_processor().amx_bf16 must hold.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  static void multiply(const AmxProduct& what);
};

}  // namespace fullbore::cpu
