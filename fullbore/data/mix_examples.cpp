#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"
#include "fullbore/data/permutation.h"

namespace fullbore {
namespace {

constexpr uint64_t kPeriod = 4096;

/// How many of a period's places each weight gets: at least one, the rest by largest remainder.
std::vector<uint64_t> places(const std::vector<Weighted>& sources) {
  double sum = 0;
  for (const Weighted& source : sources) {
    if (!(source.weight > 0) || std::isinf(source.weight))
      throw UsageError(fmt::format("mix: the weight {} is not above 0", source.weight));
    sum += source.weight;
  }
  std::vector<uint64_t> counts(sources.size(), 1);
  for (uint64_t given = sources.size(); given < kPeriod; ++given) {
    const auto deficit = [&](size_t i) {
      return sources[i].weight / sum * kPeriod - static_cast<double>(counts[i]);
    };
    size_t neediest = 0;
    for (size_t i = 1; i < counts.size(); ++i)
      if (deficit(i) > deficit(neediest)) neediest = i;
    ++counts[neediest];
  }
  return counts;
}

/// Period after period: its places are dealt out to the sources in turn and then permuted.
class Mixed : public Dataset {
 public:
  Mixed(std::vector<Weighted> sources, uint64_t seed) : sources_(std::move(sources)), seed_(seed) {
    if (sources_.empty() || sources_.size() > kPeriod)
      throw UsageError(
          fmt::format("mix: {} sources; 1 to {} were expected", sources_.size(), kPeriod));
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].source->is_endless())
        throw UsageError(fmt::format("mix: source {} ends after {} examples; shuffle or repeat it",
                                     i, sources_[i].source->size()));
      if (sources_[i].source->names() != names())
        throw UsageError(fmt::format("mix: source {} has the tensors {}, source 0 has {}", i,
                                     fmt::join(sources_[i].source->names(), ", "),
                                     fmt::join(names(), ", ")));
    }
    const std::vector<uint64_t> counts = places(sources_);
    std::inclusive_scan(counts.begin(), counts.end(), std::back_inserter(ends_));
  }
  const std::vector<std::string>& names() const override { return sources_[0].source->names(); }
  uint64_t size() const override { return kEndless; }
  Example get(uint64_t index) const override {
    const auto [source, at] = place(index);
    return source->get(at);
  }
  std::vector<TensorType> types(uint64_t index) const override {
    const auto [source, at] = place(index);
    return source->types(at);
  }

 private:
  std::pair<const Dataset*, uint64_t> place(uint64_t index) const {
    const uint64_t period = index / kPeriod;
    const uint64_t slot = Permutation(kPeriod, seed_, period)(index % kPeriod);
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), slot);
    const uint64_t begin = end == ends_.begin() ? 0 : *(end - 1);
    return {sources_[static_cast<size_t>(end - ends_.begin())].source.get(),
            period * (*end - begin) + (slot - begin)};
  }

  std::vector<Weighted> sources_;
  uint64_t seed_;
  std::vector<uint64_t> ends_;  ///< of each source's places in a period
};

}  // namespace

DatasetPtr mix_examples(std::vector<Weighted> sources, uint64_t seed) {
  return std::make_shared<Mixed>(std::move(sources), seed);
}

}  // namespace fullbore
