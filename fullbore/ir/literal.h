#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/base/shape.h"

namespace fullbore {

/// A tensor's contents on the host, in the oracle's precision: doubles for floating dtypes, int64
/// for integers and booleans.
class Literal {
 public:
  Literal() = default;
  explicit Literal(TensorType type);
  static Literal of(TensorType type,
                    std::vector<double> values);  ///< values converted to the dtype's kind
  static Literal scalar(DType dtype, double value);

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  int64_t elements() const { return type_.elements(); }
  bool floating() const { return is_floating(type_.dtype); }

  std::vector<double>& reals() { return reals_; }
  const std::vector<double>& reals() const { return reals_; }
  std::vector<int64_t>& integers() { return integers_; }
  const std::vector<int64_t>& integers() const { return integers_; }

  /// Element as double whatever the dtype (int64 above 2^53 lose bits; use integers() there).
  double at(int64_t index) const {
    return floating() ? reals_[static_cast<size_t>(index)]
                      : static_cast<double>(integers_[static_cast<size_t>(index)]);
  }
  void put(int64_t index, double value);

  /// Every element rounded to the dtype (a no-op for i64 and f64).
  void round();
  /// Raw bytes in the dtype's storage format, and back.
  std::vector<char> bytes() const;
  static Literal from_bytes(TensorType type, const void* data);

 private:
  TensorType type_;
  std::vector<double> reals_;
  std::vector<int64_t> integers_;
};

}  // namespace fullbore
