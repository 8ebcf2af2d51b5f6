#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"

namespace fullbore {

DatasetBatches::DatasetBatches(DatasetPtr dataset) : dataset_(std::move(dataset)) {
  if (dataset_->size() == 0) throw UsageError("a dataset without a batch");
  int64_t most_bytes = -1;
  for (std::vector<TensorType>& types : dataset_->shapes()) {
    FB_CHECK(types.size() == dataset_->names().size(), "{} types of {} tensors", types.size(),
             dataset_->names().size());
    std::vector<BatchField> shape;
    int64_t bytes = 0;
    for (size_t i = 0; i < types.size(); ++i) {
      bytes += types[i].bytes();
      shape.push_back({dataset_->names()[i], std::move(types[i])});
    }
    if (bytes > most_bytes) largest_ = shapes_.size();
    most_bytes = std::max(most_bytes, bytes);
    shapes_.push_back(std::move(shape));
  }
}

uint64_t DatasetBatches::index(uint64_t position) const {
  return dataset_->is_endless() ? position : position % dataset_->size();
}

size_t DatasetBatches::find_shape(uint64_t position, const std::vector<TensorType>& types) const {
  const auto is_of = [&](const std::vector<BatchField>& shape) {
    return std::equal(
        shape.begin(), shape.end(), types.begin(), types.end(),
        [](const BatchField& field, const TensorType& type) { return field.type == type; });
  };
  const auto shape = std::find_if(shapes_.begin(), shapes_.end(), is_of);
  if (shape == shapes_.end())
    throw DataError(fmt::format("batch {}: '{}' is {}: in none of the shapes that batches come in",
                                position, shapes_[0][0].name, types.at(0).text()));
  return static_cast<size_t>(shape - shapes_.begin());
}

size_t DatasetBatches::shape_at(uint64_t position) const {
  return shapes_.size() == 1 ? 0 : find_shape(position, dataset_->types(index(position)));
}

void DatasetBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const Example batch = dataset_->get(index(position));
  std::vector<TensorType> types;
  for (const Array& array : batch) types.push_back(array.type);
  find_shape(position, types);  // which is the room that there is
  for (size_t i = 0; i < batch.size(); ++i)
    if (!batch[i].bytes.empty())
      std::memcpy(buffers[i], batch[i].bytes.data(), batch[i].bytes.size());
}

}  // namespace fullbore
