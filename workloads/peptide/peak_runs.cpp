#include "workloads/peptide/peak_runs.h"

#include <algorithm>
#include <functional>

namespace fullbore::peptide {
namespace {

constexpr size_t kMostRuns = 8;

// Which of the two comes first is a coin's throw, so it is computed and not jumped on.
uint64_t* merge(const uint64_t* a, const uint64_t* a_end, const uint64_t* b, const uint64_t* b_end,
                uint64_t* out) {
  while (a != a_end && b != b_end) {
    const uint64_t left = *a;
    const uint64_t right = *b;
    const bool take_right = right < left;
    *out++ = take_right ? right : left;
    a += take_right ? 0 : 1;
    b += take_right ? 1 : 0;
  }
  out = std::copy(a, a_end, out);
  return std::copy(b, b_end, out);
}

}  // namespace

PeakRuns::PeakRuns(size_t most_peaks)
    : peaks_(most_peaks), merged_(most_peaks), order_(most_peaks) {
  ends_.reserve(kMostRuns);
}

void PeakRuns::end_run() {
  const size_t begin = ends_.empty() ? 0 : ends_.back();
  if (size_ == begin) return;
  for (size_t i = begin + 1; i < size_; ++i) {
    const uint64_t peak = peaks_[i];
    size_t j = i;
    for (; j > begin && peaks_[j - 1] > peak; --j) peaks_[j] = peaks_[j - 1];
    peaks_[j] = peak;
  }
  ends_.push_back(size_);
}

std::span<uint64_t> PeakRuns::sorted() {
  // From the last run on: noise and losses are short, and are merged with one another first.
  while (ends_.size() > 1) {
    const size_t end = ends_.back();
    ends_.pop_back();
    const size_t middle = ends_.back();
    const size_t begin = ends_.size() > 1 ? ends_[ends_.size() - 2] : 0;
    ends_.back() = end;
    const uint64_t* const base = peaks_.data();
    merge(base + begin, base + middle, base + middle, base + end, merged_.data());
    std::copy(merged_.data(), merged_.data() + (end - begin), peaks_.data() + begin);
  }
  return {peaks_.data(), size_};
}

std::span<uint64_t> PeakRuns::keep_most_intense(std::span<uint64_t> peaks, size_t most) {
  if (peaks.size() <= most) return peaks;
  if (most == 0) return {};
  for (size_t i = 0; i < peaks.size(); ++i) order_[i] = static_cast<uint32_t>(peaks[i]);
  const auto last = order_.begin() + static_cast<std::ptrdiff_t>(most - 1);
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(peaks.size());
  std::nth_element(order_.begin(), last, end, std::greater<>());
  const uint32_t least = *last;
  size_t ties = most;
  for (const uint64_t peak : peaks) ties -= static_cast<uint32_t>(peak) > least ? 1 : 0;
  size_t kept = 0;
  for (const uint64_t peak : peaks) {
    const auto intensity = static_cast<uint32_t>(peak);
    if (intensity < least || (intensity == least && ties == 0)) continue;
    if (intensity == least) --ties;
    peaks[kept++] = peak;
  }
  return peaks.first(kept);
}

void scale_to_base_peak(std::span<uint64_t> peaks) {
  float most = 0;
  for (const uint64_t peak : peaks) most = std::max(most, peak_intensity(peak));
  if (most == 0) return;
  for (uint64_t& peak : peaks) peak = pack_peak(peak_mz(peak), peak_intensity(peak) / most);
}

}  // namespace fullbore::peptide
