#pragma once
// Elements by dtype: how they are read, what they are summed in, how they are rounded.
#include "fullbore/device/cuda/kernels/gpu.h"

struct Bf16 {
  unsigned short bits;
};
struct F16 {
  unsigned short bits;
};

// An element as the number that sums are kept in: f32 for narrow floats, unsigned integers, which wrap, for integers.
FB_DEVICE double load(double x) { return x; }
FB_DEVICE float load(float x) { return x; }
FB_DEVICE float load(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<unsigned>(x.bits) << 16);
}
FB_DEVICE float load(F16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
FB_DEVICE unsigned long load(long x) { return static_cast<unsigned long>(x); }
FB_DEVICE unsigned load(int x) { return static_cast<unsigned>(x); }
FB_DEVICE unsigned load(unsigned char x) { return x; }
FB_DEVICE unsigned load(signed char x) { return static_cast<unsigned>(static_cast<int>(x)); }

template <class T>
struct SumOf {
  using Type = unsigned;
};
template <>
struct SumOf<double> {
  using Type = double;
};
template <>
struct SumOf<long> {
  using Type = unsigned long;
};
template <>
struct SumOf<float> {
  using Type = float;
};
template <>
struct SumOf<Bf16> {
  using Type = float;
};
template <>
struct SumOf<F16> {
  using Type = float;
};
template <class T>
using Sum = typename SumOf<T>::Type;

// Rounded to nearest even; integers are cut.
FB_DEVICE void store(double* to, double x) { *to = x; }
FB_DEVICE void store(float* to, float x) { *to = x; }
FB_DEVICE void store(Bf16* to, float x) {
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
}
FB_DEVICE void store(F16* to, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }
FB_DEVICE void store(long* to, unsigned long x) { *to = static_cast<long>(x); }
FB_DEVICE void store(int* to, unsigned x) { *to = static_cast<int>(x); }
FB_DEVICE void store(unsigned char* to, unsigned x) { *to = static_cast<unsigned char>(x); }
FB_DEVICE void store(signed char* to, unsigned x) { *to = static_cast<signed char>(x); }

/// A number whose < is the order of the values.
template <class T>
FB_DEVICE T ordered(T x) {
  return x;
}
FB_DEVICE float ordered(Bf16 x) { return load(x); }
FB_DEVICE float ordered(F16 x) { return load(x); }

/// Dtypes of indices: one entry serves all of them, for a branch that all threads take alike costs little beside the
/// read.
enum IndexKind : int { kIndexI64, kIndexI32, kIndexU8, kIndexI8 };
FB_DEVICE long index_at(const void* indices, long i, int kind) {
  switch (kind) {
    case kIndexI64: return static_cast<const long*>(indices)[i];
    case kIndexI32: return static_cast<const int*>(indices)[i];
    case kIndexU8: return static_cast<const unsigned char*>(indices)[i];
    default: return static_cast<const signed char*>(indices)[i];
  }
}

/// MAKE(type, suffix of the entry's name) for each dtype that has arithmetic.
#define FB_FOR_NUMBERS(MAKE) \
  MAKE(double, f64)          \
  MAKE(float, f32)           \
  MAKE(Bf16, bf16)           \
  MAKE(F16, f16)             \
  MAKE(long, i64)            \
  MAKE(int, i32)             \
  MAKE(unsigned char, u8)    \
  MAKE(signed char, i8)
