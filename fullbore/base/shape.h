#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/dtype.h"

namespace fullbore {

/// Static extents of a tensor, outermost first; row-major. Rank 0 is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  int64_t elements() const;  ///< product of the extents, 1 for rank 0
  const std::vector<int64_t>& dims() const { return dims_; }
  std::vector<int64_t> strides() const;  ///< row-major, in elements

  /// The extents [from, to).
  Shape slice(int from, int to) const;
  Shape with(int axis, int64_t extent) const;
  Shape without(int axis) const;
  Shape inserted(int axis, int64_t extent) const;

  std::string text() const;  ///< "[8,1024,768]"
  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

/// dtype and static shape: all that is known of a value before it exists.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
  std::string text() const;  ///< "f32[8,1024,768]"
  bool operator==(const TensorType&) const = default;
};

}  // namespace fullbore
