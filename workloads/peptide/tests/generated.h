#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "workloads/peptide/spectrum_generator.h"

namespace fullbore::peptide::testing {

/// One synthetic spectrum in memory of its own.
struct Generated {
  std::vector<float> mz;
  std::vector<float> intensity;
  std::vector<uint8_t> peak_mask;
  float precursor_mass = 0;
  int32_t precursor_charge = 0;
  std::vector<int32_t> targets;
  std::vector<uint8_t> target_mask;

  size_t peaks() const {
    return static_cast<size_t>(std::count(peak_mask.begin(), peak_mask.end(), 1));
  }
  std::vector<int32_t> residues() const {
    std::vector<int32_t> ids;
    for (const int32_t id : targets)
      if (id >= kFirstResidue) ids.push_back(id);
    return ids;
  }
  bool operator==(const Generated&) const = default;
};

/// Spectra of one kind, one after the other.
class Spectra {
 public:
  explicit Spectra(const SpectrumSettings& settings, const SyntheticOptions& options = {},
                   uint64_t key = 11)
      : options_(options),
        settings_(settings),
        generator_(options, key),
        scratch_(generator_.make_scratch(settings)) {
    const auto peaks = static_cast<size_t>(options_.max_peaks);
    const auto slots = static_cast<size_t>(options_.max_sequence);
    spectrum_.mz.resize(peaks);
    spectrum_.intensity.resize(peaks);
    spectrum_.peak_mask.resize(peaks);
    spectrum_.targets.resize(slots);
    spectrum_.target_mask.resize(slots);
  }
  /// Good until the next call.
  const Generated& operator[](uint64_t index) {
    const SpectrumRow row{spectrum_.mz,
                          spectrum_.intensity,
                          spectrum_.peak_mask,
                          &spectrum_.precursor_mass,
                          &spectrum_.precursor_charge,
                          spectrum_.targets,
                          spectrum_.target_mask};
    generator_.generate(index, settings_, *scratch_, row);
    return spectrum_;
  }

 private:
  SyntheticOptions options_;
  SpectrumSettings settings_;
  SpectrumGenerator generator_;
  SpectrumGenerator::ScratchPtr scratch_;
  Generated spectrum_;
};

/// Mean and standard deviation of what is added.
class Moments {
 public:
  void add(double x) {
    ++count_;
    sum_ += x;
    squares_ += x * x;
    least_ = std::min(least_, x);
    most_ = std::max(most_, x);
  }
  double count() const { return static_cast<double>(count_); }
  double mean() const { return sum_ / count(); }
  double deviation() const { return std::sqrt(squares_ / count() - mean() * mean()); }
  double least() const { return least_; }
  double most() const { return most_; }
  /// Five standard errors of a mean, of draws of this standard deviation.
  double margin(double deviation) const { return 5 * deviation / std::sqrt(count()); }

 private:
  int64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double least_ = 1e300;
  double most_ = -1e300;
};

}  // namespace fullbore::peptide::testing
