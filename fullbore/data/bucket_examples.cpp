#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"
#include "fullbore/data/permutation.h"

namespace fullbore {
namespace {

struct Bucket {
  int64_t length = 0;
  int64_t rows = 0;                ///< of a batch
  std::vector<uint64_t> examples;  ///< indices of the source
  uint64_t end = 0;                ///< batches of an epoch in this bucket and those before
};

class Bucketed : public Dataset {
 public:
  Bucketed(DatasetPtr source, const BucketOptions& options)
      : source_(std::move(source)), options_(options) {
    if (source_->is_endless() || source_->size() == 0)
      throw UsageError("bucket: a finite source with examples was expected");
    for (const int64_t length : options_.lengths) {
      if (length < 1 || options_.token_budget < length ||
          (!buckets_.empty() && buckets_.back().length >= length))
        throw UsageError(
            fmt::format("bucket: lengths {} with a budget of {} tokens; ascending ones "
                        "within the budget were expected",
                        fmt::join(options_.lengths, ", "), options_.token_budget));
      buckets_.push_back({length, options_.token_budget / length, {}, 0});
    }
    names_ = source_->names();
    names_.emplace_back("lengths");
    const std::vector<int64_t> lengths = example_lengths("bucket", *source_);
    for (uint64_t i = 0; i < lengths.size(); ++i) add(i, lengths[i]);
    for (Bucket& bucket : buckets_) {
      const auto rows = static_cast<uint64_t>(bucket.rows);
      bucket.end = batches_ += (bucket.examples.size() + rows - 1) / rows;
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override {
    return options_.epochs == kForever ? kEndless : options_.epochs * batches_;
  }
  std::vector<TensorType> types(uint64_t index) const override {
    return types(place(index).bucket);
  }
  Example get(uint64_t index) const override {
    const Place at = place(index);
    const Bucket& bucket = at.bucket;
    Example batch;
    for (const TensorType& type : types(bucket)) batch.emplace_back(type);
    for (size_t i = 0; i < std::min(options_.padding.size(), batch.size() - 1); ++i)
      std::fill(batch[i].tokens().begin(), batch[i].tokens().end(), options_.padding[i]);
    const Permutation order(bucket.examples.size(), options_.seed,
                            at.epoch * buckets_.size() + at.number);
    const auto rows = static_cast<uint64_t>(bucket.rows);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t member = at.batch * rows + row;
      if (member >= bucket.examples.size()) break;
      const Example example = source_->get(bucket.examples[order(member)]);
      for (size_t i = 0; i < example.size(); ++i) {
        const std::span<const int32_t> values = example[i].tokens();
        std::copy(values.begin(), values.end(),
                  batch[i].tokens().begin() + static_cast<std::ptrdiff_t>(row) * bucket.length);
      }
      batch.back().tokens()[row] = static_cast<int32_t>(example[0].tokens().size());
    }
    return batch;
  }
  std::vector<std::vector<TensorType>> shapes() const override {
    std::vector<std::vector<TensorType>> result;
    for (const Bucket& bucket : buckets_)
      if (!bucket.examples.empty()) result.push_back(types(bucket));
    return result;
  }

 private:
  struct Place {
    const Bucket& bucket;
    uint64_t number;  ///< of the bucket
    uint64_t epoch;
    uint64_t batch;  ///< of the bucket in the epoch
  };

  void add(uint64_t index, int64_t length) {
    const auto bucket = std::find_if(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& b) { return length <= b.length; });
    if (bucket == buckets_.end())
      throw UsageError(fmt::format("bucket: example {} has {} tokens, the longest bucket {}", index,
                                   length, buckets_.empty() ? 0 : buckets_.back().length));
    bucket->examples.push_back(index);
  }
  Place place(uint64_t index) const {
    const uint64_t epoch = index / batches_;
    // A stream of its own beside those of the buckets: the epochs' from the far end.
    const uint64_t slot = Permutation(batches_, options_.seed, ~epoch)(index % batches_);
    const auto bucket = std::find_if(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& b) { return slot < b.end; });
    const auto number = static_cast<uint64_t>(bucket - buckets_.begin());
    return {*bucket, number, epoch, slot - (number == 0 ? 0 : buckets_[number - 1].end)};
  }
  std::vector<TensorType> types(const Bucket& bucket) const {
    std::vector<TensorType> result(names_.size(), {DType::i32, {bucket.rows, bucket.length}});
    result.back().shape = {bucket.rows};
    return result;
  }

  DatasetPtr source_;
  BucketOptions options_;
  std::vector<Bucket> buckets_;
  uint64_t batches_ = 0;            ///< of an epoch
  std::vector<std::string> names_;  ///< the source's, and "lengths"
};

}  // namespace

DatasetPtr bucket_examples(DatasetPtr source, const BucketOptions& options) {
  return std::make_shared<Bucketed>(std::move(source), options);
}

}  // namespace fullbore
