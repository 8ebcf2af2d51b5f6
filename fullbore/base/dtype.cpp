#include "fullbore/base/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

template <class T>
T read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value,
              sizeof(T));
}

// Out of range doubles saturate like x86's conversion would not: a defined answer is wanted here.
int64_t to_i64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775807.0) return std::numeric_limits<int64_t>::max();
  if (value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
    case DType::i8: return "i8";
  }
  FB_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (DType dtype : kAllDTypes)
    if (dtype_name(dtype) == name) return dtype;
  return std::nullopt;
}

int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8:
    case DType::boolean:
    case DType::i8: return 1;
  }
  FB_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

double dtype_epsilon(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::bf16: return 0x1p-7;
    case DType::f16: return 0x1p-10;
    default: return 0;
  }
}

double dtype_smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1022;
    case DType::f32:
    case DType::bf16: return 0x1p-126;
    case DType::f16: return 0x1p-14;
    default: return 0;
  }
}

double dtype_largest(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::max());
    case DType::bf16: return 0x1.fep127;
    case DType::f16: return 65504;
    case DType::i64: return 9223372036854775807.0;
    case DType::i32: return 2147483647.0;
    case DType::u8: return 255;
    case DType::boolean: return 1;
    case DType::i8: return 127;
  }
  FB_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // >= 65520: infinity
  if (magnitude < 0x38800000U) {
    // Subnormal result: adding 0.5 aligns the binary point at 2^-24, and the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

double round_to_dtype(double value, DType dtype) {
  alignas(8) char storage[8];
  store_element(storage, dtype, 0, value);
  return load_element(storage, dtype, 0);
}

double load_element(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::f64: return read<double>(data, index);
    case DType::f32: return static_cast<double>(read<float>(data, index));
    case DType::bf16: return static_cast<double>(bf16_to_f32(read<uint16_t>(data, index)));
    case DType::f16: return static_cast<double>(f16_to_f32(read<uint16_t>(data, index)));
    case DType::i64: return static_cast<double>(read<int64_t>(data, index));
    case DType::i32: return read<int32_t>(data, index);
    case DType::u8:
    case DType::boolean: return read<uint8_t>(data, index);
    case DType::i8: return read<int8_t>(data, index);
  }
  FB_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

void store_element(void* data, DType dtype, int64_t index, double value) {
  switch (dtype) {
    case DType::f64: return write(data, index, value);
    case DType::f32: return write(data, index, static_cast<float>(value));
    case DType::bf16: return write(data, index, f32_to_bf16(static_cast<float>(value)));
    case DType::f16: return write(data, index, f32_to_f16(static_cast<float>(value)));
    case DType::i64: return write(data, index, to_i64(value));
    case DType::i32: return write(data, index, static_cast<int32_t>(to_i64(value)));
    case DType::u8: return write(data, index, static_cast<uint8_t>(to_i64(value)));
    case DType::boolean: return write(data, index, static_cast<uint8_t>(value != 0));
    case DType::i8: return write(data, index, static_cast<int8_t>(to_i64(value)));
  }
}

}  // namespace fullbore
