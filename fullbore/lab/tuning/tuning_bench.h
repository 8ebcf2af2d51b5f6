#pragma once
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/lab/tuning/tuning_search.h"

namespace fullbore {

/// What is tuned, and how.
struct TuningRequest {
  std::string config;                  ///< file
  std::vector<std::string> overrides;  ///< "key=value"
  Config settings;                     ///< the two, read
  TuningScope scope;
  TuningQuality quality = TuningQuality::margin;
  double minutes = 10;  ///< for all of it
  int64_t steps =
      0;  ///< of a run in a heat and in the confirmation; 0: as many as there is time for
  double turn_seconds = 0.25;
  std::string folder;
  bool resume = false;
};

/// A heat that is kept: what it was of.
struct HeatRecord {
  std::string points;  ///< hash of their settings and of the steps
  int64_t runs = 0;
  double seconds = 0;  ///< that it took
};
Result<HeatRecord> parse_heat_record(const std::string& text, const std::string& path);

/// Plans and runs in processes of their own. Every heat is kept in the folder heats/; one that is there, of the same points and
/// steps, is not made again, and counts for the time that it took.
class ProcessBench : public TuningBench {
 public:
  /// Both must stay. DataError: the folder cannot be written.
  ProcessBench(const TuningRequest& request, const StopRequest& stop);
  ArmPlan plan(const TuningPoint& point) override;
  std::vector<MeasuredRun> heat(const std::vector<TuningPoint>& points, int64_t steps,
                                const HeatLimits& limits) override;
  double seconds() const override;

 private:
  std::vector<MeasuredRun> kept(const std::string& path, const std::string& points, size_t runs);

  const TuningRequest& request_;
  const StopRequest& stop_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double kept_seconds_ = 0;
  int64_t heats_ = 0;
};

}  // namespace fullbore
