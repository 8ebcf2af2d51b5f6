#include "workloads/peptide/synthetic_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fullbore/base/error.h"

namespace fullbore::peptide {

void check_synthetic_options(const SyntheticOptions& options) {
  const auto refuse = [](std::string_view field, const auto& value, std::string_view expected) {
    throw UsageError(
        fmt::format("synthetic spectra: {} is {}, expected {}", field, value, expected));
  };
  const auto check_count = [&](std::string_view field, int64_t value, int64_t least) {
    if (value < least || value > 1000000) refuse(field, value, fmt::format("{} to 1000000", least));
  };
  check_count("batch_size", options.batch_size, 1);
  check_count("max_peaks", options.max_peaks, 1);
  check_count("max_sequence", options.max_sequence, 1);
  check_count("most_intense", options.most_intense, 0);
  if (options.ion_types.empty()) refuse("ion_types", "empty", "one or more of b, y, a");
  for (size_t i = 0; i < options.ion_types.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (options.ion_types[i] == options.ion_types[j])
        refuse("ion_types", fmt::format("{} twice", ion_type_name(options.ion_types[i])),
               "each once");
  double sum = 0;
  for (const ChargeShare& share : options.charges) {
    if (share.charge < 1 || share.charge > 100) refuse("charge", share.charge, "1 to 100");
    if (!(share.share >= 0 && share.share <= 1e9))
      refuse(fmt::format("the share of charge {}", share.charge), share.share, "0 or more");
    sum += share.share;
  }
  if (!(sum > 0)) refuse("the sum of all charges' shares", sum, "more than 0");
}

int64_t most_peaks(const SyntheticOptions& options, const SpectrumSettings& settings) {
  int64_t series = 0;
  for (const IonType type : options.ion_types)
    series += options.neutral_losses && type != IonType::a ? 2 : 1;
  const int64_t peaks = series * (settings.max_length - 1) + settings.noise_peaks;
  return options.most_intense > 0 ? std::min(options.most_intense, peaks) : peaks;
}

}  // namespace fullbore::peptide
