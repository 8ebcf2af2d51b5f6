#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace fullbore::peptide {

/// A peak as one number: bits of its m/z above those of its intensity. Neither is negative, so peaks in
/// order of their numbers are in order of m/z, equal ones in order of intensity.
inline uint64_t pack_peak(float mz, float intensity) {
  return (uint64_t{std::bit_cast<uint32_t>(mz)} << 32) | std::bit_cast<uint32_t>(intensity);
}
inline float peak_mz(uint64_t peak) {
  return std::bit_cast<float>(static_cast<uint32_t>(peak >> 32));
}
inline float peak_intensity(uint64_t peak) {
  return std::bit_cast<float>(static_cast<uint32_t>(peak));
}

/// Collects the peaks of one spectrum in runs that are sorted or nearly so, as series of fragments are,
/// and merges them. Allocates when it is made.
class PeakRuns {
 public:
  explicit PeakRuns(size_t most_peaks);

  void clear() {
    size_ = 0;
    ends_.clear();
  }
  /// Values below 0 and beyond the `most_peaks` are the caller's mistake.
  void add(float mz, float intensity) { peaks_[size_++] = pack_peak(mz, intensity); }
  void end_run();
  /// All peaks by m/z. The span is good until the next clear().
  std::span<uint64_t> sorted();
  /// Leaves the `most` most intense of sorted(); of equal ones those of lower m/z.
  std::span<uint64_t> keep_most_intense(std::span<uint64_t> peaks, size_t most);

 private:
  size_t size_ = 0;
  std::vector<uint64_t> peaks_;
  std::vector<uint64_t> merged_;
  std::vector<uint32_t> order_;
  std::vector<size_t> ends_;
};

/// Divides intensities by the greatest of them, which becomes 1.
void scale_to_base_peak(std::span<uint64_t> peaks);

}  // namespace fullbore::peptide
