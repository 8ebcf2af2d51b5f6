#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/lab/ablation/ablation.h"
#include "fullbore/lab/ablation/effects.h"
#include "fullbore/lab/quality/equivalence.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {

/// A metric of an arm, as means over seeds. NaN: not known.
struct ArmMetric {
  std::string name;
  double at_equal_steps = Effect::kUnknown;  ///< after the last step
  double at_equal_samples = Effect::
      kUnknown;  ///< where the arm with the fewest samples ends, between two evaluations by a line
  double at_equal_time =
      Effect::kUnknown;  ///< likewise where the fastest arm ends, seconds of steps counted
  EquivalenceResult against_base = {};  ///< at equal steps
};

/// All that is known of an arm. Numbers that are not known are NaN.
struct ArmReport {
  static constexpr double kUnknown = Effect::kUnknown;

  std::string name;
  std::vector<std::string> on;  ///< names of its switches that are
  std::string reason;   ///< why there are no figures: refused, failed, no time; empty: there are
  std::string same_as;  ///< the arm whose programs these are, and whose figures; empty: its own
  int64_t seeds = 0;    ///< runs
  int64_t steps = 0;    ///< of each
  double step_seconds = kUnknown;         ///< median over turns
  ConfidenceInterval step_interval = {};  ///< 95 %
  double throughput = kUnknown;           ///< of unit, per second
  double roofline_share = kUnknown;       ///< of the bound of its own program
  int64_t planned_bytes = 0;
  int64_t resident_bytes = 0;
  double first_step_cold = kUnknown;  ///< seconds, compiled programs not kept; data are
  double first_step_warm = kUnknown;
  std::vector<double> log_times;  ///< by seed: log(seconds per sample / the base's)
  Effect time;                    ///< log(seconds per sample / the base's)
  std::vector<ArmMetric> metrics;
  bool no_worse = false;  ///< every metric passed, or all are equal to the bit
  double run_hours =
      kUnknown;  ///< of all steps of the configuration (as many samples), with its start
  double saved_hours = kUnknown;  ///< against the base
  double joules_per_sample = kUnknown;
  double run_kwh = kUnknown;    ///< of all samples of the configuration
  double saved_kwh = kUnknown;  ///< against the base
  double payback_step =
      kUnknown;  ///< from which on what its start takes longer is made up for; infinite: never
  double ahead_until_step =
      kUnknown;  ///< where its start takes less and its steps more: up to which it is ahead
  std::vector<std::pair<double, double>>
      curve;  ///< seconds of steps and the first metric, of the first seed

  /// How many times the base's speed.
  double speed() const;
  double speed_low() const;
  double speed_high() const;
};

struct AblationReport {
  std::string config;
  std::string unit;                                 ///< of throughput: "tokens"
  std::string machine;                              ///< processor and threads
  std::string energy;                               ///< why energy is not told
  std::string energy_of = "processors and memory";  ///< what energy is told of
  int64_t seeds = 0;
  int64_t cut_seeds = 0;  ///< for which there was no time left
  int64_t steps = 0;
  int64_t configured_steps = 0;
  int64_t eval_batches = 0;  ///< of an evaluation, at most; 0: all
  std::vector<std::string> switches;
  std::vector<std::string> ladder;  ///< names of those that go together, in order
  std::vector<std::string> unused;
  std::vector<std::string> alone;
  std::vector<ArmReport> arms;
  std::vector<double> control_log_times;  ///< by seed
  Effect control;  ///< the base against itself: what the instrument says of nothing
  double detectable =
      Effect::kUnknown;  ///< the least effect on time that was seen with probability 0.8, relative
  int recommended = 0;   ///< of arms; 0, the base: nothing is better
  std::vector<std::string> undecided;  ///< faster arms that are not recommended, with why
};

/// What an ablation found. It must be complete.
AblationReport report_ablation(const Ablation& ablation, const AblationRequest& request,
                               const QualityMetrics& quality);

nlohmann::ordered_json to_json(const AblationReport& report);
/// A table for 80 columns.
std::string ablation_text(const AblationReport& report);
std::string ablation_markdown(const AblationReport& report);
/// A page that stands alone, without script.
std::string ablation_page(const AblationReport& report);

}  // namespace fullbore
