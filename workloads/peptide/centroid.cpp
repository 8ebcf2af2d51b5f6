#include "workloads/peptide/centroid.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace fullbore::peptide {
namespace {

constexpr double kShareOfHeight = 1.0 / 3;
// Samples of one signal lie close: further apart than this share of their m/z, two are of different peaks. Ion traps
// sample most coarsely, every 0.07 to 0.1 Da from m/z 100 on.
constexpr double kWidestStep = 1e-3;

void sort_by_mz(std::vector<double>& mz, std::vector<float>& intensity) {
  if (std::is_sorted(mz.begin(), mz.end())) return;
  std::vector<size_t> order(mz.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return mz[a] < mz[b]; });
  std::vector<double> sorted_mz(mz.size());
  std::vector<float> sorted_intensity(mz.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sorted_mz[i] = mz[order[i]];
    sorted_intensity[i] = intensity[order[i]];
  }
  mz = std::move(sorted_mz);
  intensity = std::move(sorted_intensity);
}

}  // namespace

void centroid(std::vector<double>& mz, std::vector<float>& intensity) {
  sort_by_mz(mz, intensity);
  const size_t n = mz.size();
  const auto is_gap = [&](size_t i) {  // between i and i + 1
    return mz[i + 1] - mz[i] > kWidestStep * mz[i];
  };
  std::vector<double> found_mz;
  std::vector<float> found_intensity;
  for (size_t first = 0; first < n;) {
    size_t last = first;  // of samples as high as this one
    while (last + 1 < n && !is_gap(last) && intensity[last + 1] == intensity[first]) ++last;
    const float height = intensity[first];
    const bool rises = first == 0 || is_gap(first - 1) || intensity[first - 1] < height;
    const bool falls = last + 1 == n || is_gap(last) || intensity[last + 1] < height;
    if (height > 0 && rises && falls) {
      const double least = kShareOfHeight * double{height};
      size_t begin = first;
      while (begin > 0 && !is_gap(begin - 1) && intensity[begin - 1] <= intensity[begin] &&
             double{intensity[begin - 1]} >= least)
        --begin;
      size_t end = last;
      while (end + 1 < n && !is_gap(end) && intensity[end + 1] <= intensity[end] &&
             double{intensity[end + 1]} >= least)
        ++end;
      double sum = 0;
      double weight = 0;
      for (size_t i = begin; i <= end; ++i) {
        sum += mz[i] * double{intensity[i]};
        weight += double{intensity[i]};
      }
      found_mz.push_back(sum / weight);
      found_intensity.push_back(height);
    }
    first = last + 1;
  }
  mz = std::move(found_mz);
  intensity = std::move(found_intensity);
}

}  // namespace fullbore::peptide
