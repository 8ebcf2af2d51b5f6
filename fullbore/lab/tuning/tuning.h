#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/arm_plan.h"
#include "fullbore/lab/tuning/tuning_space.h"

namespace fullbore {

/// What becomes of a candidate.
enum class TuningVerdict : uint8_t {
  open,           ///< not measured yet
  taken,          ///< faster beyond its interval
  slower,         ///< declined: its interval lies above that of what it would replace
  no_difference,  ///< declined: not faster by what would be worth a change
  same_program,   ///< changes nothing in this job
  does_not_fit,   ///< in memory
  refused,        ///< by the plan: does not go with the rest
  failed,         ///< its run did
  not_allowed,    ///< faster, and changes numbers, which nobody has allowed
  worse,          ///< faster, and quality is not shown to be no worse
  not_confirmed,  ///< faster in the search, and not again beside the defaults
  no_time,        ///< before its turn came, time was out
};
/// "taken", "declined: slower", "no time".
std::string verdict_text(TuningVerdict verdict);

/// A candidate and what was found. Numbers that are not known are NaN or 0.
struct TuningRow {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  Switch choice;
  TuningVerdict verdict = TuningVerdict::open;
  std::string reason = {};  ///< in words, where there is more to say
  int64_t heats = 0;
  double difference = kUnknown;  ///< log(seconds per sample / those of what it would replace)
  double low = kUnknown, high = kUnknown;  ///< 95 %
  double predicted_seconds = kUnknown;     ///< of a step: the planner's roofline
  double measured_seconds = kUnknown;      ///< at the pace of the base's fastest heat
  int64_t predicted_bytes = 0;  ///< resident, at most: the plan's peak and the process beside it
  int64_t resident_bytes = 0;
};

/// An arm of the confirmation: base and tuned settings as an ablation measured them, with seeds of their own.
struct TuningTrial {
  TuningPoint point = {};
  std::string reason = {};  ///< why it is declined; empty: it is not
  int64_t runs = 0;
  int64_t steps = 0;
  double difference = TuningRow::kUnknown;
  double low = TuningRow::kUnknown, high = TuningRow::kUnknown;
  std::string quality = {};  ///< "no worse", "equal to the bit", or why not
};

struct Tuning {
  std::string identity;  ///< of machine, build, job and what was asked
  std::string machine;   ///< for people
  std::string when;      ///< "2026-11-26T13:40:00Z"
  std::string config;    ///< file
  double seconds = 0;    ///< that it took
  TuningPoint start;     ///< what all is compared with: empty, or what makes the job fit in memory
  std::string start_reason;  ///< why it is not empty
  TuningRow base;            ///< of that
  std::vector<TuningRow> rows;
  std::vector<TuningTrial> trials;  ///< by weight
  TuningPoint taken;                ///< in place of the configuration, start among it
  bool out_of_time = false;
  bool interrupted = false;

  /// The trial whose point is taken; null: all stays as it was.
  const TuningTrial* winner() const;
};

enum class TuningQuality : uint8_t {
  same,    ///< only what leaves numbers as they are
  margin,  ///< what changes them if metrics stay within the margins that the workload declares
  any,     ///< whatever is faster
};

}  // namespace fullbore
