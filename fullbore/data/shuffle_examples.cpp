#include <fmt/format.h>

#include <optional>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"
#include "fullbore/data/permutation.h"

namespace fullbore {
namespace {

/// A finite source epoch after epoch, in its order or, with a seed, in another one each time.
class Epochs : public Dataset {
 public:
  Epochs(const char* name, DatasetPtr source, std::optional<uint64_t> seed, uint64_t epochs)
      : source_(std::move(source)), length_(source_->size()), seed_(seed), epochs_(epochs) {
    if (length_ == 0 || source_->is_endless())
      throw UsageError(fmt::format("{}: the source is {}; a finite one was expected", name,
                                   length_ == 0 ? "empty" : "endless"));
    if (epochs_ != kForever && epochs_ > (kEndless - 1) / length_)
      throw UsageError(
          fmt::format("{}: {} epochs of {} examples are too many", name, epochs_, length_));
  }
  const std::vector<std::string>& names() const override { return source_->names(); }
  uint64_t size() const override { return epochs_ == kForever ? kEndless : epochs_ * length_; }
  Example get(uint64_t index) const override { return source_->get(at(index)); }
  std::vector<TensorType> types(uint64_t index) const override { return source_->types(at(index)); }

 private:
  uint64_t at(uint64_t index) const {
    const uint64_t within = index % length_;
    return seed_ ? Permutation(length_, *seed_, index / length_)(within) : within;
  }

  DatasetPtr source_;
  uint64_t length_;
  std::optional<uint64_t> seed_;
  uint64_t epochs_;
};

}  // namespace

DatasetPtr repeat_examples(DatasetPtr source, uint64_t epochs) {
  return std::make_shared<Epochs>("repeat", std::move(source), std::nullopt, epochs);
}

DatasetPtr shuffle_examples(DatasetPtr source, uint64_t seed, uint64_t epochs) {
  return std::make_shared<Epochs>("shuffle", std::move(source), seed, epochs);
}

}  // namespace fullbore
