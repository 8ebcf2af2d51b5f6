#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// Is T what elements of the dtype are on the host? float of f32, uint16_t of bf16 and f16, bool or uint8_t of boolean;
/// char and std::byte are the bytes of any.
template <class T>
bool is_host_element(DType dtype) {
  if constexpr (std::is_same_v<T, std::byte> || std::is_same_v<T, char>) return true;
  if constexpr (std::is_same_v<T, double>) return dtype == DType::f64;
  if constexpr (std::is_same_v<T, float>) return dtype == DType::f32;
  if constexpr (std::is_same_v<T, uint16_t>) return is_low_precision(dtype);
  if constexpr (std::is_same_v<T, int64_t>) return dtype == DType::i64;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == DType::i32;
  if constexpr (std::is_same_v<T, int8_t>) return dtype == DType::i8;
  if constexpr (std::is_same_v<T, uint8_t>) return dtype == DType::u8 || dtype == DType::boolean;
  if constexpr (std::is_same_v<T, bool>) return dtype == DType::boolean;
  return false;
}

}  // namespace fullbore
