// Products of rows rounded to 8 bits with weights in 8 bits (ops/quantized_linear.h), by tensor cores: sums are exact, in 32
// bits, so their order is free. Rows are rounded once, by a launch of their own, into scratch memory; products read them and
// the weights where they lie, four elements of a row at a time, as the fragments of a product have them: lane 4 g + t has of
// both operands row g (of a also row g + 8) and of depth 4 t to 4 t + 3, and 16 more behind (PTX ISA 9.7.14.5).
#include "fullbore/device/cuda/kernels/elements.h"

namespace {

constexpr int kDepth = 32;  // of a product
constexpr int kWarps = 4;
constexpr float kLargest = 127;
constexpr unsigned kInfinity = 0x7f800000U;
constexpr float kSmallestNormal = 1.17549435e-38F;

FB_DEVICE unsigned word_from_lane_xor(unsigned x, int mask) {
  return __builtin_bit_cast(unsigned, from_lane_xor(__builtin_bit_cast(float, x), mask));
}

FB_DEVICE unsigned rounded(float x, float scale) {
  int q;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(q) : "f"(x / scale));
  return static_cast<unsigned>(q) & 0xff;
}

// x [rows, depth] -> q [rows, pitch], zeros from depth on, and a scale for each row. A block a row.
template <class T>
FB_DEVICE void round_rows(const T* x, signed char* q, float* scales, int depth, int pitch) {
  FB_SHARED static unsigned largest_of[kWarps];
  const T* const row = x + static_cast<long>(block_x()) * depth;
  // As integers magnitudes have the order of their values, with infinity and what is no number above all.
  unsigned largest = 0;
  for (int i = thread(); i < depth; i += kWarps * kWarp)
    largest = most(largest, __builtin_bit_cast(unsigned, load(row[i])) & 0x7fffffffU);
  for (int mask = 1; mask < kWarp; mask *= 2)
    largest = most(largest, word_from_lane_xor(largest, mask));
  if (thread() % kWarp == 0) largest_of[thread() / kWarp] = largest;
  barrier();
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) largest = most(largest, largest_of[warp]);
  const bool is_finite = largest < kInfinity;
  float scale = __builtin_bit_cast(float, largest) / kLargest;
  if (scale < kSmallestNormal) scale = 1;
  if (!is_finite) scale = __builtin_nanf("");
  if (thread() == 0) scales[block_x()] = scale;
  unsigned* const words = reinterpret_cast<unsigned*>(q + static_cast<long>(block_x()) * pitch);
  for (int word = thread(); word < pitch / 4; word += kWarps * kWarp) {
    unsigned four = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (is_finite && 4 * word + i < depth)
        four |= rounded(load(row[4 * word + i]), scale) << (8 * i);
    words[word] = four;
  }
}

/// Rows of 8 bits. Those of weights may begin anywhere, and end anywhere.
struct Weights {
  const signed char* first;
  int rows, depth;
  bool in_words;

  FB_DEVICE Weights(const signed char* from, int of_rows, int of_depth)
      : first(from),
        rows(of_rows),
        depth(of_depth),
        in_words(of_depth % 4 == 0 && reinterpret_cast<unsigned long>(from) % 4 == 0) {}
  FB_DEVICE unsigned word(int row, int k) const {
    if (row >= rows || k >= depth) return 0;
    const signed char* const at = first + static_cast<long>(row) * depth + k;
    if (in_words) return *reinterpret_cast<const unsigned*>(at);
    unsigned four = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (k + i < depth) four |= (static_cast<unsigned>(at[i]) & 0xff) << (8 * i);
    return four;
  }
};
struct Activations {
  const signed char* first;
  int rows, pitch;
  FB_DEVICE unsigned word(int row, int k) const {
    if (row >= rows) return 0;
    return *reinterpret_cast<const unsigned*>(first + static_cast<long>(row) * pitch + k);
  }
};

FB_DEVICE void multiply(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// What becomes of a sum.
template <class T>
struct Results {
  T* y;
  const float* row_scales;
  const void* scales;
  bool scales_are_wide;  ///< f32, or as x
  int rows, columns;

  FB_DEVICE void put(int row, int column, int sum) const {
    if (row >= rows || column >= columns) return;
    const float scale = scales_are_wide ? static_cast<const float*>(scales)[column]
                                        : load(static_cast<const T*>(scales)[column]);
    store(y + static_cast<long>(row) * columns + column,
          static_cast<float>(sum) * scale * row_scales[row]);
  }
  /// Of a fragment of sums whose first row and column these are.
  FB_DEVICE void put(int row, int column, const int (&sums)[4]) const {
    const int lane = thread() % kWarp, group = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) put(row + group + i / 2 * 8, column + 2 * t + i % 2, sums[i]);
  }
};

// 16 rows and 8 columns of a block, whose warps take turns at depth: of few rows weights are read as fast as there are warps.
template <class T>
FB_DEVICE void few_rows(const Activations& x, const Weights& weights, const Results<T>& results) {
  FB_SHARED static int sums_of[kWarps][kWarp][4];
  const int tiles = (results.columns + 7) / 8;
  const int row = block_x() / tiles * 16, column = block_x() % tiles * 8;
  const int warp = thread() / kWarp, lane = thread() % kWarp, group = lane / 4, t = lane % 4;
  int sums[4] = {};
  for (int k = warp * kDepth + 4 * t; k < x.pitch; k += kWarps * kDepth) {
    const unsigned a[4] = {x.word(row + group, k), x.word(row + group + 8, k),
                           x.word(row + group, k + 16), x.word(row + group + 8, k + 16)};
    const unsigned b[2] = {weights.word(column + group, k), weights.word(column + group, k + 16)};
    multiply(sums, a, b);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sums_of[warp][lane][i] = sums[i];
  barrier();
  if (warp != 0) return;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int other = 1; other < kWarps; ++other) sums[i] += sums_of[other][lane][i];
  results.put(row, column, sums);
}

// 64 rows and 64 columns of a block, 16 columns of a warp.
template <class T>
FB_DEVICE void many_rows(const Activations& x, const Weights& weights, const Results<T>& results) {
  constexpr int kRowTiles = 4, kColumnTiles = 2;
  const int tiles = (results.columns + 63) / 64;
  const int warp = thread() / kWarp, lane = thread() % kWarp, group = lane / 4, t = lane % 4;
  const int row = block_x() / tiles * 64, column = block_x() % tiles * 64 + warp * 16;
  int sums[kRowTiles][kColumnTiles][4] = {};
#pragma unroll 1
  for (int k = 4 * t; k < x.pitch; k += kDepth) {
    unsigned b[kColumnTiles][2];
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) b[n][i] = weights.word(column + 8 * n + group, k + 16 * i);
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
      const int of_tile = row + 16 * m + group;
      const unsigned a[4] = {x.word(of_tile, k), x.word(of_tile + 8, k), x.word(of_tile, k + 16),
                             x.word(of_tile + 8, k + 16)};
#pragma unroll
      for (int n = 0; n < kColumnTiles; ++n) multiply(sums[m][n], a, b[n]);
    }
  }
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m)
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n) results.put(row + 16 * m, column + 8 * n, sums[m][n]);
}

}  // namespace

#define FB_PRODUCTS(T, suffix, entry)                                                              \
  FB_KERNEL void quantized_linear_##entry##_##suffix(                                              \
      const signed char* q, const float* row_scales, const signed char* weight, const void* scale, \
      T* y, int rows, int columns, int depth, int pitch, int scales_are_wide) {                    \
    entry##_rows<T>({q, rows, pitch}, {weight, columns, depth},                                    \
                    {y, row_scales, scale, scales_are_wide != 0, rows, columns});                  \
  }
#define FB_QUANTIZED_LINEAR(T, suffix)                                                      \
  FB_KERNEL void quantized_linear_round_##suffix(const T* x, signed char* q, float* scales, \
                                                 int depth, int pitch) {                    \
    round_rows(x, q, scales, depth, pitch);                                                 \
  }                                                                                         \
  FB_PRODUCTS(T, suffix, few)                                                               \
  FB_PRODUCTS(T, suffix, many)

FB_QUANTIZED_LINEAR(float, f32)
FB_QUANTIZED_LINEAR(Bf16, bf16)
FB_QUANTIZED_LINEAR(F16, f16)
