#include "fullbore/base/shape.h"

#include <fmt/format.h>

namespace fullbore {

int64_t Shape::elements() const {
  int64_t count = 1;
  for (int64_t extent : dims_) count *= extent;
  return count;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> strides(dims_.size(), 1);
  for (size_t axis = dims_.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims_[axis];
  return strides;
}

Shape Shape::slice(int from, int to) const {
  return Shape(std::vector<int64_t>(dims_.begin() + from, dims_.begin() + to));
}

Shape Shape::with(int axis, int64_t extent) const {
  Shape result = *this;
  result[axis] = extent;
  return result;
}

Shape Shape::without(int axis) const {
  Shape result = *this;
  result.dims_.erase(result.dims_.begin() + axis);
  return result;
}

Shape Shape::inserted(int axis, int64_t extent) const {
  Shape result = *this;
  result.dims_.insert(result.dims_.begin() + axis, extent);
  return result;
}

// Both are said of every value of a graph that is printed.
std::string Shape::text() const {
  std::string text = "[";
  for (const int64_t extent : dims_) {
    if (text.size() > 1) text += ',';
    const fmt::format_int digits(extent);
    text.append(digits.data(), digits.size());
  }
  return text += ']';
}

std::string TensorType::text() const { return std::string(dtype_name(dtype)) += shape.text(); }

}  // namespace fullbore
