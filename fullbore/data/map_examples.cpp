#include <utility>

#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

using Change = std::function<Example(Example, uint64_t)>;

class Mapped : public Dataset {
 public:
  Mapped(DatasetPtr source, std::vector<std::string> names, Change change)
      : source_(std::move(source)), names_(std::move(names)), change_(std::move(change)) {}
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override { return source_->size(); }
  Example get(uint64_t index) const override { return change_(source_->get(index), index); }

 private:
  DatasetPtr source_;
  std::vector<std::string> names_;
  Change change_;
};

}  // namespace

DatasetPtr map_examples(DatasetPtr source, std::vector<std::string> names, Change change) {
  return std::make_shared<Mapped>(std::move(source), std::move(names), std::move(change));
}

}  // namespace fullbore
