#include "fullbore/ir/literal.h"

#include <cstring>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

Literal::Literal(TensorType type) : type_(std::move(type)) {
  const auto count = static_cast<size_t>(type_.elements());
  if (floating())
    reals_.resize(count);
  else
    integers_.resize(count);
}

Literal Literal::of(TensorType type, std::vector<double> values) {
  Literal result(std::move(type));
  FB_CHECK(static_cast<int64_t>(values.size()) == result.elements(), "{} values for {}",
           values.size(), result.type_.text());
  for (size_t i = 0; i < values.size(); ++i) result.put(static_cast<int64_t>(i), values[i]);
  return result;
}

Literal Literal::scalar(DType dtype, double value) { return of({dtype, {}}, {value}); }

void Literal::put(int64_t index, double value) {
  if (floating())
    reals_[static_cast<size_t>(index)] = value;
  else
    integers_[static_cast<size_t>(index)] =
        type_.dtype == DType::boolean ? value != 0 : static_cast<int64_t>(value);
}

void Literal::round() {
  for (double& value : reals_) value = round_to_dtype(value, type_.dtype);
  if (type_.dtype == DType::i32)
    for (int64_t& value : integers_) value = static_cast<int32_t>(value);
  if (type_.dtype == DType::u8)
    for (int64_t& value : integers_) value = static_cast<uint8_t>(value);
  if (type_.dtype == DType::i8)
    for (int64_t& value : integers_) value = static_cast<int8_t>(value);
}

std::vector<char> Literal::bytes() const {
  std::vector<char> result(static_cast<size_t>(type_.bytes()));
  if (type_.dtype == DType::i64) {
    if (!result.empty()) std::memcpy(result.data(), integers_.data(), result.size());
    return result;
  }
  for (int64_t i = 0; i < elements(); ++i) store_element(result.data(), type_.dtype, i, at(i));
  return result;
}

Literal Literal::from_bytes(TensorType type, const void* data) {
  Literal result(std::move(type));
  if (result.dtype() == DType::i64) {
    if (result.elements() > 0)
      std::memcpy(result.integers_.data(), data, static_cast<size_t>(result.type_.bytes()));
    return result;
  }
  for (int64_t i = 0; i < result.elements(); ++i)
    result.put(i, load_element(data, result.dtype(), i));
  return result;
}

}  // namespace fullbore
