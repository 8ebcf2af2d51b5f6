#include "fullbore/data/staged_batches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

bool same_shape(const std::vector<BatchField>& a, const std::vector<BatchField>& b) {
  return std::ranges::equal(a, b, [](const BatchField& x, const BatchField& y) {
    return x.name == y.name && x.type == y.type;
  });
}

}  // namespace

StagedBatches::StagedBatches(std::vector<Stage> stages)
    : stages_(std::move(stages)), shape_of_(stages_.size()) {
  FB_CHECK(!stages_.empty() && stages_.front().first == 0, "stages do not begin at 0");
  for (size_t i = stages_.size(); i-- > 0;) {
    FB_CHECK(i == 0 || stages_[i - 1].first < stages_[i].first, "stages do not ascend");
    const std::vector<BatchField>& fields = stages_[i].source->fields();
    const auto known = std::ranges::find_if(
        shapes_, [&](const std::vector<BatchField>& shape) { return same_shape(shape, fields); });
    shape_of_[i] = static_cast<size_t>(known - shapes_.begin());
    if (known == shapes_.end()) shapes_.push_back(fields);
  }
}

size_t StagedBatches::stage_at(uint64_t position) const {
  const auto next = std::ranges::upper_bound(stages_, position, {}, &Stage::first);
  return static_cast<size_t>(next - stages_.begin()) - 1;
}

void StagedBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const Stage& stage = stages_[stage_at(position)];
  stage.source->fill(position - stage.first + stage.begin, buffers);
  if (position != stage.first) return;
  const std::vector<BatchField>& fields = stage.source->fields();
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == "resets")
      std::memset(buffers[i], 1, static_cast<size_t>(fields[i].type.bytes()));
}

}  // namespace fullbore
