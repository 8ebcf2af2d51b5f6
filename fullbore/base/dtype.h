#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fullbore {

/// Element types. `boolean` is one byte, 0 or 1.
enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8, boolean, i8 };
inline constexpr DType kAllDTypes[] = {DType::f64, DType::f32,     DType::bf16,
                                       DType::f16, DType::i64,     DType::i32,
                                       DType::u8,  DType::boolean, DType::i8};

std::string_view dtype_name(DType dtype);  ///< "f32", "bool", ...
std::optional<DType> parse_dtype(std::string_view name);
int64_t dtype_bytes(DType dtype);

constexpr bool is_floating(DType dtype) { return dtype <= DType::f16; }
constexpr bool is_integer(DType dtype) {
  return (dtype >= DType::i64 && dtype <= DType::u8) || dtype == DType::i8;
}
constexpr bool is_signed_integer(DType dtype) { return is_integer(dtype) && dtype != DType::u8; }
constexpr bool is_low_precision(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// Distance from 1 to the next larger value: f64 2^-52, f32 2^-23, bf16 2^-7, f16 2^-10; else 0.
double dtype_epsilon(DType dtype);
/// Smallest positive normal value; 0 for integers.
double dtype_smallest_normal(DType dtype);
double dtype_largest(DType dtype);

/// Round to nearest even, NaN stays NaN. (IEEE 754; bf16 = upper half of binary32.)
uint16_t f32_to_bf16(float value);
inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t bits);

/// Value that `value` becomes when stored as `dtype`: rounded to nearest even for floats, truncated
/// towards zero and wrapped for integers, compared with 0 for booleans. f64 is rounded to f32 first
/// on its way to bf16 and f16, as compiled kernels do.
double round_to_dtype(double value, DType dtype);

/// Reads or writes element `index` of a raw buffer of `dtype`, as double.
double load_element(const void* data, DType dtype, int64_t index);
void store_element(void* data, DType dtype, int64_t index, double value);

}  // namespace fullbore
