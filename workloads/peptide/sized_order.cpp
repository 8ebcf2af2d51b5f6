#include "workloads/peptide/sized_order.h"

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/data/permutation.h"

namespace fullbore::peptide {
namespace {

constexpr int64_t kPeakSizes = 4;
constexpr uint64_t kMostBatches = 64;               // of a window
constexpr uint64_t kBatchOrder = 0x62617463686573;  // its key is not that of the items' order

}  // namespace

std::vector<int64_t> peak_sizes(int64_t most, bool trim) {
  std::vector<int64_t> sizes;
  for (int64_t i = trim ? 1 : kPeakSizes; i <= kPeakSizes; ++i) {
    const int64_t size = (most * i + kPeakSizes - 1) / kPeakSizes;
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

size_t peak_size_of(const std::vector<int64_t>& sizes, size_t peaks) {
  const auto found = std::ranges::lower_bound(sizes, static_cast<int64_t>(peaks));
  return static_cast<size_t>(std::min(found, sizes.end() - 1) - sizes.begin());
}

SizedOrder::SizedOrder(std::vector<uint8_t> sizes, int64_t batch_size, bool shuffle, uint64_t seed)
    : sizes_(std::move(sizes)),
      rows_(static_cast<uint64_t>(batch_size)),
      shuffle_(shuffle),
      seed_(seed) {
  FB_CHECK(!sizes_.empty() && batch_size > 0, "{} items in batches of {}", sizes_.size(),
           batch_size);
  const auto [least, most] = std::ranges::minmax(sizes_);
  if (!shuffle_)
    batches_per_window_ = batches();
  else  // nothing is to be sorted where all is of one size
    batches_per_window_ =
        least == most ? 1 : std::clamp<uint64_t>(sizes_.size() / rows_, 1, kMostBatches);
}

uint64_t SizedOrder::batches() const { return (sizes_.size() + rows_ - 1) / rows_; }

std::shared_ptr<const SizedOrder::Window> SizedOrder::make_window(uint64_t number) const {
  auto window = std::make_shared<Window>();
  window->number = number;
  const uint64_t count = sizes_.size();
  const uint64_t places = batches_per_window_ * rows_;
  window->items.reserve(places);
  if (shuffle_) {
    const uint64_t first = number * places;
    for (uint64_t at = first; at < first + places;) {
      const uint64_t epoch = at / count;
      const Permutation order(count, seed_, epoch);
      for (const uint64_t end = std::min(first + places, (epoch + 1) * count); at < end; ++at)
        window->items.push_back(order(at % count));
    }
  } else {
    for (uint64_t item = 0; item < count; ++item) window->items.push_back(item);
  }
  std::ranges::stable_sort(window->items, {}, [&](uint64_t item) { return sizes_[item]; });
  window->items.resize(places, kNobody);
  const Permutation order(batches_per_window_, seed_ ^ kBatchOrder, number);
  for (uint64_t i = 0; i < batches_per_window_; ++i)
    window->batch.push_back(shuffle_ ? order(i) : i);
  return window;
}

std::shared_ptr<const SizedOrder::Window> SizedOrder::window(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Window>& kept = kept_[number % 2];
  if (!kept || kept->number != number) kept = make_window(number);
  return kept;
}

size_t SizedOrder::size_of(const Window& window, uint64_t batch) const {
  const auto begin = window.items.begin() + static_cast<std::ptrdiff_t>(batch * rows_);
  const auto end = std::find(begin, begin + static_cast<std::ptrdiff_t>(rows_), kNobody);
  return sizes_[*(end - 1)];
}

SizedOrder::Batch SizedOrder::batch(uint64_t position) const {
  if (!shuffle_) position %= batches();
  const auto own = window(position / batches_per_window_);
  const uint64_t batch = own->batch[position % batches_per_window_];
  const auto begin = own->items.begin() + static_cast<std::ptrdiff_t>(batch * rows_);
  return {{begin, begin + static_cast<std::ptrdiff_t>(rows_)}, size_of(*own, batch)};
}

size_t SizedOrder::size(uint64_t position) const {
  if (!shuffle_) position %= batches();
  const auto own = window(position / batches_per_window_);
  return size_of(*own, own->batch[position % batches_per_window_]);
}

}  // namespace fullbore::peptide
