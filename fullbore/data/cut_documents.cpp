#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

class Cut : public Dataset {
 public:
  Cut(DatasetPtr source, int64_t length) : source_(std::move(source)), length_(length) {
    if (length_ < 1) throw UsageError(fmt::format("cut: pieces of {} tokens", length_));
    for (const int64_t tokens : example_lengths("cut", *source_)) {
      const int64_t pieces = (std::max<int64_t>(tokens, 1) - 1 + length_ - 1) / length_;
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + static_cast<uint64_t>(pieces));
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Example get(uint64_t index) const override {
    const Piece piece = find(index);
    const Array tokens = source_->part(piece.document, 0, piece.begin, piece.count + 1);
    const auto count = static_cast<size_t>(piece.count);
    return {Array::of(tokens.tokens().first(count)), Array::of(tokens.tokens().last(count))};
  }
  std::vector<TensorType> types(uint64_t index) const override {
    return std::vector<TensorType>(2, TensorType{DType::i32, {find(index).count}});
  }

 private:
  struct Piece {
    uint64_t document;
    int64_t begin;
    int64_t count;  ///< of predictions
  };
  Piece find(uint64_t index) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    const auto document = static_cast<uint64_t>(end - ends_.begin());
    const uint64_t first = document == 0 ? 0 : ends_[document - 1];
    const int64_t begin = static_cast<int64_t>(index - first) * length_;
    const int64_t predictions = source_->types(document).at(0).elements() - 1;
    return {document, begin, std::min(length_, predictions - begin)};
  }

  DatasetPtr source_;
  int64_t length_;
  std::vector<uint64_t> ends_;  ///< pieces of each document and those before
  std::vector<std::string> names_ = {"inputs", "targets"};
};

}  // namespace

DatasetPtr cut_documents(DatasetPtr source, int64_t length) {
  return std::make_shared<Cut>(std::move(source), length);
}

}  // namespace fullbore
