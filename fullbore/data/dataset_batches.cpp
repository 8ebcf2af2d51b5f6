#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"

namespace fullbore {

DatasetBatches::DatasetBatches(DatasetPtr dataset, std::vector<TensorType> largest)
    : dataset_(std::move(dataset)) {
  if (dataset_->size() == 0) throw UsageError("a dataset without a batch");
  if (largest.empty()) largest = dataset_->types(0);
  FB_CHECK(largest.size() == dataset_->names().size(), "{} types of {} tensors", largest.size(),
           dataset_->names().size());
  for (size_t i = 0; i < largest.size(); ++i)
    fields_.push_back({dataset_->names()[i], std::move(largest[i])});
}

uint64_t DatasetBatches::index(uint64_t position) const {
  return dataset_->is_endless() ? position : position % dataset_->size();
}

std::vector<BatchField> DatasetBatches::fields_at(uint64_t position) const {
  std::vector<BatchField> fields = fields_;
  const std::vector<TensorType> types = dataset_->types(index(position));
  for (size_t i = 0; i < fields.size(); ++i) fields[i].type = types[i];
  return fields;
}

void DatasetBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const Example batch = dataset_->get(index(position));
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].type.bytes() > fields_[i].type.bytes())
      throw DataError(fmt::format("batch {}: '{}' is {}, there is room for {}", position,
                                  fields_[i].name, batch[i].type.text(), fields_[i].type.text()));
    if (!batch[i].bytes.empty())
      std::memcpy(buffers[i], batch[i].bytes.data(), batch[i].bytes.size());
  }
}

}  // namespace fullbore
