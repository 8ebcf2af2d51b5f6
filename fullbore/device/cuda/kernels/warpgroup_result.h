#pragma once
// How two warpgroups write a tile of y [batch, m, n] from the registers that have its sums.
#include "fullbore/device/cuda/kernels/warpgroup_tiles.h"

FB_DEVICE bool is_aligned(const void* base, int contiguous) {
  return reinterpret_cast<unsigned long>(base) % 16 == 0 && contiguous % kChunk == 0;
}

FB_DEVICE unsigned pair_of(float low, float high, Bf16) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
FB_DEVICE unsigned pair_of(float low, float high, F16) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
FB_DEVICE unsigned word_from_lane_xor(unsigned x, int mask) {
  return static_cast<unsigned>(__nvvm_shfl_sync_bfly_i32(kAllLanes, static_cast<int>(x), mask, 31));
}

/// Lanes l and l ^ mask exchange the second word of the lower for the first of the upper.
FB_DEVICE void exchange(unsigned& first, unsigned& second, int mask) {
  const bool is_upper = (thread() & mask) != 0;
  const unsigned got = word_from_lane_xor(is_upper ? first : second, mask);
  first = is_upper ? got : first;
  second = is_upper ? second : got;
}

/// Lane 4 g + t has word i of row t of a matrix of four lanes; it gets word t of row i.
FB_DEVICE void transpose(unsigned (&words)[4]) {
  exchange(words[0], words[1], 1);
  exchange(words[2], words[3], 1);
  exchange(words[0], words[2], 2);
  exchange(words[1], words[3], 2);
}

typedef float Floats __attribute__((ext_vector_type(4)));
typedef float TwoFloats __attribute__((ext_vector_type(2)));

/// The same address, made here: sums of it and of constants are not kept in registers from the kernel's start.
template <class P>
FB_DEVICE P* here(P* address) {
  auto global = (__attribute__((address_space(1))) P*)address;
  asm volatile("" : "+l"(global));
  return (P*)global;
}

/// What is written of a tile: y = c + sums; c [batch, m, n] where y is f32, a bias [n] where it is not, or null.
template <class T>
struct Result {
  const float* c;
  void* y;
  int m, n;
  bool is_wide;
  bool by_vectors;  ///< are rows of y and c aligned to what is written at once?

  FB_DEVICE Result(const float* c, void* y, const Problem& of)
      : c(c),
        y(y),
        m(of.m),
        n(of.n),
        is_wide(of.is_wide),
        by_vectors(is_aligned(y, n) && (c == nullptr || is_aligned(c, n))) {}

  /// What is read of c, on its way to L2 while there is time.
  template <int kRows, int kColumns>
  FB_DEVICE void fetch(const ProductPlace& place) const {
    constexpr int kLine = 32, kLines = kColumns / kLine;
    if (c == nullptr || !is_wide) return;
#pragma unroll
    for (int i = 0; i < kRows * kLines / kThreads; ++i) {
      const int line = thread() + i * kThreads;
      const int row = place.row * kRows + line / kLines;
      const int column = place.column * kColumns + line % kLines * kLine;
      if (row < m && column < n)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(
            c + (static_cast<long>(place.batch) * m + row) * n + column));
    }
  }

  /// Sums of a thread of the 64 rows of its warpgroup from row0 on, of 8 columns each four. Four lanes exchange theirs, for 64 bytes of a row that are written at once.
  template <int kSums>
  FB_DEVICE void write(float (&sums)[kSums], int of_batch, int row0, int column0) const {
    if (by_vectors) {
      write_by_vectors(sums, of_batch, row0, column0);
      return;
    }
    const int row = first_row(row0);
    float kept[kSums];  // in local memory: registers have no index, and code for each would be long
#pragma unroll
    for (int i = 0; i < kSums; ++i) kept[i] = sums[i];
#pragma unroll 1
    for (int i = 0; i < kSums; ++i)
      write_one(static_cast<long>(of_batch) * m, row + i % 4 / 2 * 8,
                column0 + i / 4 * 8 + thread() % 4 * 2 + i % 2, kept[i]);
  }
  /// Where rows of y and c are known to be aligned.
  template <int kSums>
  FB_DEVICE void write_by_vectors(float (&sums)[kSums], int of_batch, int row0, int column0) const {
    const int row = first_row(row0);
    const long batch = static_cast<long>(of_batch) * m;
    if (c != nullptr && !is_wide) add_bias(sums, column0);
    write_rows<0>(sums, batch, row, column0);
    write_rows<1>(sums, batch, row + 8, column0);
  }

 private:
  FB_DEVICE static int first_row(int row0) {
    return row0 + thread() % 128 / kWarp * 16 + thread() % kWarp / 4;
  }
  /// In place, and behind one branch: where there is none, nothing is done for it.
  template <int kSums>
  FB_DEVICE void add_bias(float (&sums)[kSums], int column0) const {
    const float* const bias = here(c + column0 + thread() % 4 * 2);
#pragma unroll
    for (int j = 0; j < kSums / 4; ++j) {
      TwoFloats of_columns = 0;
      if (column0 + 8 * j < n) of_columns = *reinterpret_cast<const TwoFloats*>(bias + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[4 * j + i] += of_columns[i % 2];
    }
  }

  FB_DEVICE void write_one(long batch, int row, int column, float sum) const {
    if (row >= m || column >= n) return;
    const long at = (batch + row) * n + column;
    if (is_wide)
      static_cast<float*>(y)[at] = c != nullptr ? c[at] + sum : sum;
    else
      store(static_cast<T*>(y) + at, c != nullptr ? c[column] + sum : sum);
  }

  template <int kHalf, int kSums>
  FB_DEVICE void write_rows(const float (&sums)[kSums], long batch, int row, int column0) const {
    const int t = thread() % 4;
    const long at_row = (batch + row) * n;
    if (is_wide) {
      // Of two blocks of 8 columns lanes of even number take the first, for four neighbours each.
      const bool takes_second = t % 2 != 0;
      const int column = column0 + 2 * t + (takes_second ? 6 : 0);
      const int there = row < m ? n - column : 0;
      float* const to = here(static_cast<float*>(y) + at_row + column);
      const float* const from = here(c + at_row + column);
      // Several reads before the first write, which c may share its bytes with.
      constexpr int kVectors = kSums / 8, kAtOnce = least(kVectors, 8);
#pragma unroll
      for (int j0 = 0; j0 < kVectors; j0 += kAtOnce) {
        Floats values[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          values[j] = 0;
          if (c != nullptr && 16 * (j0 + j) < there)
            values[j] = *reinterpret_cast<const Floats*>(from + 16 * (j0 + j));
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          Floats sum;
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float first = sums[8 * (j0 + j) + 2 * kHalf + i];
            const float second = sums[8 * (j0 + j) + 4 + 2 * kHalf + i];
            const float got = from_lane_xor(takes_second ? first : second, 1);
            sum[i] = takes_second ? got : first;
            sum[i + 2] = takes_second ? second : got;
          }
          if (16 * (j0 + j) < there)
            *reinterpret_cast<Floats*>(to + 16 * (j0 + j)) = values[j] + sum;
        }
      }
      return;
    }
    const int there = row < m ? n - column0 - 8 * t : 0;
    T* const to = here(static_cast<T*>(y) + at_row + column0 + 8 * t);
#pragma unroll
    for (int j = 0; j < kSums / 4; j += 4) {
      unsigned words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] = pair_of(sums[4 * (j + i) + 2 * kHalf], sums[4 * (j + i) + 2 * kHalf + 1], T{});
      transpose(words);
      if (8 * j < there)
        *reinterpret_cast<Vector4*>(to + 8 * j) = Vector4{words[0], words[1], words[2], words[3]};
    }
  }
};
