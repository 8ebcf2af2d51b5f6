#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "fullbore/base/result.h"

namespace fullbore {

/// How long single steps took: counts in bins of a 32nd of an octave, 2.2 % wide, from a microsecond to 2^20 seconds; what
/// is shorter or longer counts in the first or last. Percentiles of a running mean would hide the long ones.
class StepHistogram {
 public:
  void add(double seconds);  ///< what is no positive number is left out
  void merge(const StepHistogram& other);

  int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  ///< of all together
  /// The step that a share in [0, 1] of them is no longer than, to 1.1 %; NaN of none.
  double quantile(double share) const;

  /// {"steps": 3, "seconds": 0.3, "bins": [[-107, 2], [-106, 1]]}: bin 32 log2(seconds), rounded down, and its count.
  nlohmann::ordered_json to_json() const;
  /// Failure: what is not as to_json() writes it.
  static Result<StepHistogram> from_json(const nlohmann::json& json);

 private:
  std::map<int, int64_t> bins_;
  int64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace fullbore
