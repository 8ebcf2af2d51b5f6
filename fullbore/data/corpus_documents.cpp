#include <algorithm>
#include <utility>

#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

class Documents : public Dataset {
 public:
  Documents(std::shared_ptr<const TokenCorpus> corpus, TokenSpan span)
      : corpus_(std::move(corpus)), span_(span) {
    FB_CHECK(0 <= span.begin && span.begin <= span.end && span.end <= corpus_->size(),
             "tokens [{}, {}) of {}", span.begin, span.end, corpus_->size());
    if (span.size() == 0) return;
    first_ = corpus_->document_of(span.begin);
    count_ = corpus_->document_of(span.end - 1) + 1 - first_;
  }
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override { return static_cast<uint64_t>(count_); }
  Example get(uint64_t index) const override { return {part(index, 0, 0, span_of(index).size())}; }
  std::vector<TensorType> types(uint64_t index) const override {
    return {{DType::i32, {span_of(index).size()}}};
  }
  Array part(uint64_t index, size_t, int64_t begin, int64_t count) const override {
    const TokenSpan document = span_of(index);
    FB_CHECK(begin >= 0 && count >= 0 && begin + count <= document.size(), "tokens [{}, {}) of {}",
             begin, begin + count, document.size());
    Array tokens(TensorType{DType::i32, {count}});
    corpus_->copy(document.begin + begin, count, tokens.tokens().data());
    return tokens;
  }

 private:
  TokenSpan span_of(uint64_t index) const {
    const TokenSpan document = corpus_->document(first_ + static_cast<int64_t>(index));
    return {std::max(document.begin, span_.begin), std::min(document.end, span_.end)};
  }

  std::shared_ptr<const TokenCorpus> corpus_;
  TokenSpan span_;
  int64_t first_ = 0;
  int64_t count_ = 0;
  std::vector<std::string> names_ = {"tokens"};
};

}  // namespace

DatasetPtr corpus_documents(std::shared_ptr<const TokenCorpus> corpus, TokenSpan span) {
  return std::make_shared<Documents>(std::move(corpus), span);
}

}  // namespace fullbore
