#include "fullbore/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"

namespace fullbore {

std::vector<TensorType> Dataset::types(uint64_t index) const {
  std::vector<TensorType> result;
  for (const Array& array : get(index)) result.push_back(array.type);
  return result;
}

Array Dataset::part(uint64_t index, size_t tensor, int64_t begin, int64_t count) const {
  const Array whole = std::move(get(index).at(tensor));
  FB_CHECK(whole.type.shape.rank() == 1 && begin >= 0 && count >= 0 &&
               begin + count <= whole.type.elements(),
           "elements [{}, {}) of {}", begin, begin + count, whole.type.text());
  Array part(TensorType{whole.type.dtype, {count}});
  const int64_t width = dtype_bytes(whole.type.dtype);
  std::copy_n(whole.bytes.begin() + begin * width, count * width, part.bytes.begin());
  return part;
}

std::vector<int64_t> example_lengths(const char* decorator, const Dataset& source) {
  if (source.is_endless())
    throw UsageError(
        fmt::format("{}: the source is endless; a finite one was expected", decorator));
  std::vector<int64_t> lengths(source.size());
  for (uint64_t i = 0; i < lengths.size(); ++i) {
    const std::vector<TensorType> types = source.types(i);
    for (const TensorType& type : types)
      if (type.dtype != DType::i32 || type.shape.rank() != 1 || type != types[0])
        throw UsageError(fmt::format(
            "{}: a tensor of example {} is {}; {} was expected", decorator, i, type.text(),
            type.dtype == DType::i32 && type.shape.rank() == 1 ? "the length of the others"
                                                               : "i32[n]"));
    lengths[i] = types.at(0).elements();
  }
  return lengths;
}

}  // namespace fullbore
