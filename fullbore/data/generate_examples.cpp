#include <utility>

#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

class Generated : public Dataset {
 public:
  Generated(std::vector<std::string> names, uint64_t size, std::function<Example(uint64_t)> make)
      : names_(std::move(names)), size_(size), make_(std::move(make)) {}
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override { return size_; }
  Example get(uint64_t index) const override { return make_(index); }

 private:
  std::vector<std::string> names_;
  uint64_t size_;
  std::function<Example(uint64_t)> make_;
};

}  // namespace

DatasetPtr generate_examples(std::vector<std::string> names, uint64_t size,
                             std::function<Example(uint64_t)> make) {
  return std::make_shared<Generated>(std::move(names), size, std::move(make));
}

}  // namespace fullbore
