#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

class Batched : public Dataset {
 public:
  Batched(DatasetPtr source, int64_t size) : source_(std::move(source)), batch_(size) {
    if (size < 1) throw UsageError(fmt::format("batch: a size of {}", size));
    if (source_->size() < static_cast<uint64_t>(size))
      throw UsageError(fmt::format("batch: the source has {} examples, a batch needs {}",
                                   source_->size(), size));
  }
  const std::vector<std::string>& names() const override { return source_->names(); }
  uint64_t size() const override {
    return source_->is_endless() ? kEndless : source_->size() / static_cast<uint64_t>(batch_);
  }
  std::vector<TensorType> types(uint64_t index) const override {
    std::vector<TensorType> stacked = source_->types(index * static_cast<uint64_t>(batch_));
    for (TensorType& type : stacked) type.shape = type.shape.inserted(0, batch_);
    return stacked;
  }
  Example get(uint64_t index) const override {
    const uint64_t first = index * static_cast<uint64_t>(batch_);
    Example batch;
    std::vector<TensorType> row;  // the types of each example
    for (uint64_t i = 0; i < static_cast<uint64_t>(batch_); ++i) {
      Example example = source_->get(first + i);
      for (size_t field = 0; field < example.size(); ++field) {
        const TensorType& type = example[field].type;
        if (i == 0) {
          row.push_back(type);
          batch.emplace_back(TensorType{type.dtype, type.shape.inserted(0, batch_)});
        }
        if (type != row[field])
          throw DataError(fmt::format("batch: '{}' of example {} is {}, of example {} {}",
                                      names()[field], first, row[field].text(), first + i,
                                      type.text()));
        std::copy(example[field].bytes.begin(), example[field].bytes.end(),
                  batch[field].bytes.begin() +
                      static_cast<std::ptrdiff_t>(i * example[field].bytes.size()));
      }
    }
    return batch;
  }

 private:
  DatasetPtr source_;
  int64_t batch_;
};

}  // namespace

DatasetPtr batch_examples(DatasetPtr source, int64_t size) {
  return std::make_shared<Batched>(std::move(source), size);
}

}  // namespace fullbore
