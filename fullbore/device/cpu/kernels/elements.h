#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/dtype.h"
#include "fullbore/base/shape.h"

/// What the hand-written kernels share: elements by type and by size, one axis of a shape, and how
/// work is cut into items.
namespace fullbore::cpu {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

/// An element as the number that sums are kept in: f32 for all narrow floats, unsigned integers
/// (which wrap by definition) of the same width.
inline double load(double x) { return x; }
inline float load(float x) { return x; }
inline float load(Bf16 x) { return bf16_to_f32(x.bits); }
inline float load(F16 x) { return f16_to_f32(x.bits); }
inline uint64_t load(int64_t x) { return static_cast<uint64_t>(x); }
inline uint32_t load(int32_t x) { return static_cast<uint32_t>(x); }
inline uint32_t load(uint8_t x) { return x; }
template <class T>
using Sum = decltype(load(T{}));

template <class T>
T store(Sum<T> x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return {f32_to_bf16(x)};
  else if constexpr (std::is_same_v<T, F16>)
    return {f32_to_f16(x)};
  else
    return static_cast<T>(x);
}

/// An element as a number whose < is the order of its values.
template <class T>
auto ordered(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return load(x);
}

/// visit(T{}) with the type of the dtype's elements.
template <class Visit>
auto with_numeric(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f64: return visit(double{});
    case DType::f32: return visit(float{});
    case DType::bf16: return visit(Bf16{});
    case DType::f16: return visit(F16{});
    case DType::i64: return visit(int64_t{});
    case DType::i32: return visit(int32_t{});
    case DType::u8: return visit(uint8_t{});
    case DType::i8: return visit(int8_t{});
    case DType::boolean: break;
  }
  FB_CHECK(false, "arithmetic on {}", dtype_name(dtype));
}

template <class Visit>
auto with_index(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::i64: return visit(int64_t{});
    case DType::i32: return visit(int32_t{});
    case DType::u8: return visit(uint8_t{});
    case DType::i8: return visit(int8_t{});
    default: FB_CHECK(false, "{} as an index", dtype_name(dtype));
  }
}

/// visit(T{}) with an unsigned type as wide as the dtype: for kernels that only move elements.
template <class Visit>
auto with_bits(DType dtype, const Visit& visit) {
  switch (dtype_bytes(dtype)) {
    case 1: return visit(uint8_t{});
    case 2: return visit(uint16_t{});
    case 4: return visit(uint32_t{});
    default: return visit(uint64_t{});
  }
}

/// memcpy that is one move for the size of one element.
inline void copy_bytes(char* to, const char* from, int64_t bytes) {
  switch (bytes) {
    case 1: *to = *from; return;
    case 2: std::memcpy(to, from, 2); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default:
      if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

/// One axis of a shape seen as [outer, extent, inner].
struct Axis {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;

  Axis(const Shape& shape, int64_t axis) : extent(shape[static_cast<int>(axis)]) {
    for (int i = 0; i < shape.rank(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape[i];
  }
  int64_t elements() const { return outer * extent * inner; }
};

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

/// [0, count) in equal parts, the last one shorter.
struct Blocks {
  int64_t count = 0;
  int64_t size = 1;

  int64_t parts() const { return divide_up(count, size); }
  int64_t begin(int64_t part) const { return part * size; }
  int64_t end(int64_t part) const { return std::min(count, (part + 1) * size); }
};

/// Bytes that an item should move at least, so that its own overhead vanishes; and how many bytes one
/// core moves per nanosecond.
inline constexpr int64_t kItemBytes = 16 << 10;
inline constexpr double kBytesPerNanosecond = 8;

}  // namespace fullbore::cpu
