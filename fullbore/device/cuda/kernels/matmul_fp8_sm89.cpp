// y [m, n] = q(a s_a) q(b s_b) / (s_a s_b) of numbers of 8 bits (ops/fp8_matmul.h), by tensor cores of compute capability 8.9. a
// [m, k], or [k, m] transposed, and b [k, n], or [n, k], are f32 or bf16 where they lie, and are rounded on their way to shared
// memory: products read 8 bits along k of both operands, so that what lies the other way is turned over there too.
//
// A block makes a tile of y, each of its warps a part of 16-row and 8-column fragments: lane 4 g + t has of a rows g and g + 8,
// of b column g, of 32 k bytes 4 t to 4 t + 3 and 16 behind, which is what ldmatrix loads of rows of 16 bytes (PTX ISA
// 9.7.14.5). While a stage of 64 of k is multiplied, the next one comes to registers: a's and, once that is rounded, b's.
// Tensor cores sum 8 bits with few bits of their own: what they make of a stage begins with zero and is added to sums in f32.
// Bound: what L2 brings, 2 bytes for each number of bf16, of which a tile of 128 makes 64 products.
#include "fullbore/device/cuda/kernels/tensor_core.h"

namespace {

constexpr int kDepth = 64;         // of a stage
constexpr int kRow = kDepth + 16;  // bytes: 16 of each of 8 rows lie in different banks
constexpr int kElements = 32;      // of an operand's stage, of a thread
constexpr unsigned kInfinity = 0x7f800000U;

extern FB_SHARED __attribute__((aligned(16))) unsigned char dynamic_shared[];

template <bool kIsE5m2>
FB_DEVICE unsigned rounded(float low, float high) {
  unsigned short pair;
  if constexpr (kIsE5m2)
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

// Infinity is no large number: what has overflowed is to be seen.
FB_DEVICE float scaled(float x, float scale) {
  const bool is_infinite = (__builtin_bit_cast(unsigned, x) & 0x7fffffffU) == kInfinity;
  return is_infinite ? __builtin_nanf("") : x * scale;
}

template <bool kIsE5m2>
FB_DEVICE unsigned four(float x0, float x1, float x2, float x3, float scale) {
  return rounded<kIsE5m2>(scaled(x0, scale), scaled(x1, scale)) |
         rounded<kIsE5m2>(scaled(x2, scale), scaled(x3, scale)) << 16;
}

#define FB_MULTIPLY(A, B)                                                   \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." A "." B             \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <bool kAIsE5m2, bool kBIsE5m2>
FB_DEVICE void multiply_bytes(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (kAIsE5m2 && kBIsE5m2)
    FB_MULTIPLY("e5m2", "e5m2");
  else if constexpr (kAIsE5m2)
    FB_MULTIPLY("e5m2", "e4m3");
  else if constexpr (kBIsE5m2)
    FB_MULTIPLY("e4m3", "e5m2");
  else
    FB_MULTIPLY("e4m3", "e4m3");
}
#undef FB_MULTIPLY

/// One operand, lines (rows of a, columns of b) by depth, or the other way round.
template <class T>
struct Matrix {
  const T* first;
  int lines, depths;
  bool depth_last;
  bool in_vectors;  ///< may 16 bytes be read at once?
  float scale;

  FB_DEVICE Matrix(const T* from, int of_lines, int of_depths, bool is_depth_last, float of_scale)
      : first(from),
        lines(of_lines),
        depths(of_depths),
        depth_last(is_depth_last),
        scale(of_scale) {
    const int contiguous = depth_last ? depths : lines;
    in_vectors = reinterpret_cast<unsigned long>(from) % 16 == 0 &&
                 contiguous % (16 / static_cast<int>(sizeof(T))) == 0;
  }
};

/// A thread's elements of a stage of kLines lines: vectors of 16 bytes along the operand's rows. Where depth is last, every
/// kThreads-th vector of the stage; else four neighbours of depth, a word of each line, and the next so far on.
template <class T, int kLines, int kThreads>
struct Stage {
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  static constexpr int kVectors = kElements / kChunk;
  static constexpr int kGroups = kDepth / 4;  // of four of depth
  static_assert(kLines * kDepth == kElements * kThreads);
  Vector4 raw[kVectors];

  FB_DEVICE static int line_of(int i, bool depth_last) {
    return depth_last ? (thread() + i * kThreads) / (kDepth / kChunk)
                      : (thread() + i / 4 * kThreads) / kGroups * kChunk;
  }
  FB_DEVICE static int depth_of(int i, bool depth_last) {
    return depth_last ? (thread() + i * kThreads) % (kDepth / kChunk) * kChunk
                      : (thread() + i / 4 * kThreads) % kGroups * 4 + i % 4;
  }

  FB_DEVICE void read(const Matrix<T>& from, int line0, int depth0) {
    const int outers = from.depth_last ? from.lines : from.depths;
    const int inners = from.depth_last ? from.depths : from.lines;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int line = line0 + line_of(i, from.depth_last);
      const int depth = depth0 + depth_of(i, from.depth_last);
      const int outer = from.depth_last ? line : depth, inner = from.depth_last ? depth : line;
      const int there = outer < outers ? inners - inner : 0;
      const T* const at = from.first + static_cast<long>(outer) * inners + inner;
      raw[i] = Vector4{0, 0, 0, 0};
      if (from.in_vectors) {
        if (there > 0) raw[i] = *reinterpret_cast<const Vector4*>(at);
        continue;
      }
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        if constexpr (sizeof(T) == 4) {
          if (word < there) raw[i][word] = __builtin_bit_cast(unsigned, at[word]);
        } else {
          const unsigned low = 2 * word < there ? at[2 * word].bits : 0;
          const unsigned high = 2 * word + 1 < there ? at[2 * word + 1].bits : 0;
          raw[i][word] = high << 16 | low;
        }
      }
    }
  }

  FB_DEVICE float element(int vector, int i) const {
    // By way of a number of its own: clang 14 casts a vector's first element, whichever is named.
    const unsigned word = raw[vector][sizeof(T) == 4 ? i : i / 2];
    if constexpr (sizeof(T) == 4) return __builtin_bit_cast(float, word);
    return __builtin_bit_cast(float, i % 2 == 0 ? word << 16 : word & 0xffff0000U);
  }

  template <bool kIsE5m2>
  FB_DEVICE void put(unsigned char* tile, bool depth_last, float scale) const {
    if (depth_last) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i)
#pragma unroll
        for (int e = 0; e < kChunk; e += 4)
          *reinterpret_cast<unsigned*>(tile + line_of(i, true) * kRow + depth_of(i, true) + e) =
              four<kIsE5m2>(element(i, e), element(i, e + 1), element(i, e + 2), element(i, e + 3),
                            scale);
      return;
    }
#pragma unroll
    for (int i = 0; i < kVectors; i += 4)
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        *reinterpret_cast<unsigned*>(tile + (line_of(i, false) + e) * kRow + depth_of(i, false)) =
            four<kIsE5m2>(element(i, e), element(i + 1, e), element(i + 2, e), element(i + 3, e),
                          scale);
  }
};

/// Of a block: a tile of kTile rows and columns, of each warp kWarpRows and 32.
template <class T, bool kAIsE5m2, bool kBIsE5m2, int kTile, int kWarpRows>
struct Product {
  static constexpr int kWarpColumns = kWarp;
  static constexpr int kWarpsAcross = kTile / kWarpColumns;
  static constexpr int kThreads = kTile / kWarpRows * kWarpsAcross * kWarp;
  static constexpr int kHigh = kWarpRows / 16, kWide = kWarpColumns / 8;
  static constexpr int kOperandBytes = kTile * kRow;
  static constexpr int kStagedRow = kWarpColumns + 8;
  using Part = Stage<T, kTile, kThreads>;

  // Fragments of columns j and j + 1 of a warp's.
  FB_DEVICE static void add_columns(float (&sums)[kHigh][kWide][4], int j, unsigned a_tile,
                                    unsigned b_tile, int row, int column) {
    const int lane = thread() % kWarp, matrix = lane / 8, line = lane % 8;
    unsigned b[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      load_matrices(b[half],
                    b_tile + static_cast<unsigned>((column + 8 * j + matrix / 2 * 8 + line) * kRow +
                                                   32 * half + matrix % 2 * 16));
#pragma unroll
    for (int i = 0; i < kHigh; ++i) {
      unsigned a[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        load_matrices(a[half],
                      a_tile + static_cast<unsigned>((row + 16 * i + matrix % 2 * 8 + line) * kRow +
                                                     32 * half + matrix / 2 * 16));
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        float few[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half)
          multiply_bytes<kAIsE5m2, kBIsE5m2>(few, a[half], b[half][2 * next],
                                             b[half][2 * next + 1]);
#pragma unroll
        for (int part = 0; part < 4; ++part) sums[i][j + next][part] += few[part];
      }
    }
  }

  // 16 rows at a time by way of shared memory, so that a warp's lanes write neighbours.
  FB_DEVICE static void write(const float (&sums)[kHigh][kWide][4], void* y, int row, int column,
                              int m, int n, bool is_wide, float back) {
    const int lane = thread() % kWarp;
    float* const staged =
        reinterpret_cast<float*>(dynamic_shared) + thread() / kWarp * 16 * kStagedRow;
    const int at_column = column + lane;
#pragma unroll
    for (int i = 0; i < kHigh; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; ++j)
#pragma unroll
        for (int part = 0; part < 4; ++part)
          staged[(lane / 4 + part / 2 * 8) * kStagedRow + 8 * j + lane % 4 * 2 + part % 2] =
              sums[i][j][part];
      warp_barrier();
      const int rows = least(16, m - row - 16 * i);
      if (at_column < n)
#pragma unroll 1
        for (int r = 0; r < rows; ++r) {
          const long at = static_cast<long>(row + 16 * i + r) * n + at_column;
          const float result = staged[r * kStagedRow + lane] * back;
          if (is_wide)
            static_cast<float*>(y)[at] = result;
          else
            store(static_cast<T*>(y) + at, result);
        }
      warp_barrier();
    }
  }

  FB_DEVICE static void run(const Matrix<T>& a, const Matrix<T>& b, void* y, bool is_wide) {
    const int row0 = block_y() * kTile, column0 = block_x() * kTile;
    const int warp = thread() / kWarp;
    const int row = warp / kWarpsAcross * kWarpRows, column = warp % kWarpsAcross * kWarpColumns;
    const unsigned shared = shared_address(dynamic_shared);
    const int steps = (a.depths + kDepth - 1) / kDepth;
    static_assert(kWide == 4);
    Part part;
    const auto put_a = [&](int step) __attribute__((device)) FB_INLINED {
      part.template put<kAIsE5m2>(dynamic_shared + step % 2 * 2 * kOperandBytes, a.depth_last,
                                  a.scale);
    };
    const auto put_b = [&](int step) __attribute__((device)) FB_INLINED {
      part.template put<kBIsE5m2>(dynamic_shared + (step % 2 * 2 + 1) * kOperandBytes, b.depth_last,
                                  b.scale);
    };
    float sums[kHigh][kWide][4] = {};
    if (steps > 0) {
      part.read(a, row0, 0);
      put_a(0);
      part.read(b, column0, 0);
      put_b(0);
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      barrier();  // the stage is there for all, and the other one has been read by all
      const bool goes_on = step + 1 < steps;
      const unsigned a_tile = shared + static_cast<unsigned>(step % 2 * 2 * kOperandBytes);
      const unsigned b_tile = a_tile + kOperandBytes;
      if (goes_on) part.read(a, row0, (step + 1) * kDepth);
      add_columns(sums, 0, a_tile, b_tile, row, column);
      if (goes_on) {
        put_a(step + 1);
        part.read(b, column0, (step + 1) * kDepth);
      }
      add_columns(sums, 2, a_tile, b_tile, row, column);
      if (goes_on) put_b(step + 1);
    }
    barrier();  // all stages have been read
    write(sums, y, row0 + row, column0 + column, a.lines, b.lines, is_wide,
          1.0F / (a.scale * b.scale));
  }
};

template <class T>
FB_DEVICE float scale_at(const void* scale, bool is_wide) {
  return is_wide ? *static_cast<const float*>(scale) : load(*static_cast<const T*>(scale));
}

}  // namespace

// Names: dtype, formats of a and b, rows and columns of a block's tile. Shared memory is dynamic: two stages, 160 bytes for
// each row and column of a tile. wide_scales: bit 0, a's is f32 whatever a is; bit 1, b's.
#define FB_FP8_TILE(T, SUFFIX, A, B, A_IS_E5M2, B_IS_E5M2, TILE, WARP_ROWS)                    \
  FB_KERNEL void fp8_matmul_##SUFFIX##_##A##_##B##_##TILE(                                     \
      const T* a, const T* b, const void* scale_a, const void* scale_b, void* y, int m, int n, \
      int k, int transpose_a, int transpose_b, int is_wide, int wide_scales) {                 \
    Product<T, A_IS_E5M2, B_IS_E5M2, TILE, WARP_ROWS>::run(                                    \
        {a, m, k, transpose_a == 0, scale_at<T>(scale_a, (wide_scales & 1) != 0)},             \
        {b, n, k, transpose_b != 0, scale_at<T>(scale_b, (wide_scales & 2) != 0)}, y,          \
        is_wide != 0);                                                                         \
  }
#define FB_FP8(T, SUFFIX, TILE, WARP_ROWS)                          \
  FB_FP8_TILE(T, SUFFIX, e4m3, e4m3, false, false, TILE, WARP_ROWS) \
  FB_FP8_TILE(T, SUFFIX, e4m3, e5m2, false, true, TILE, WARP_ROWS)  \
  FB_FP8_TILE(T, SUFFIX, e5m2, e4m3, true, false, TILE, WARP_ROWS)  \
  FB_FP8_TILE(T, SUFFIX, e5m2, e5m2, true, true, TILE, WARP_ROWS)
// A stage of f32 takes a thread twice the registers, which beside the sums of a tile of 128 are more than there are.
FB_FP8(float, f32, 64, 32)
FB_FP8(Bf16, bf16, 64, 32)
FB_FP8(Bf16, bf16, 128, 64)
