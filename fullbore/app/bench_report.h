#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/app/bench_start.h"
#include "fullbore/base/result.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/plan/report.h"
#include "fullbore/train/config.h"
#include "fullbore/train/step_benchmark.h"

namespace fullbore {

/// A shape that batches come in, and the program for it.
struct BenchShape {
  std::string batch;  ///< of the first tensor: "[12,64]"
  PlanReport plan;
};

/// One setting of a job, measured.
struct BenchContender {
  std::string name;                   ///< "engine.precision=bf16", or "as configured"
  std::vector<std::string> settings;  ///< that tell it from the configuration file
  Config config;
  std::string batches;                 ///< what they are made of, for people
  std::string batch;                   ///< "12 x 64 tokens"
  std::string sample_unit;             ///< what a row of a batch is; empty: rates are of tokens
  std::vector<std::string> decisions;  ///< what memory changed of the settings
  Machine machine;                     ///< peaks of as many threads as it has
  std::vector<BenchShape> shapes;      ///< as times.shapes has them
  int64_t planned_peak_bytes = 0;      ///< of all programs together
  int64_t parameters = 0;
  double trace_seconds = 0;
  double compile_seconds = 0;
  double seconds_to_first_step = 0;            ///< of trace, State, compilation and that step
  std::optional<Result<MeasuredStart>> start;  ///< of processes of its own; none: not asked for
  BenchmarkTimes times;
};

struct BenchReport {
  std::string config;                      ///< path
  std::vector<BenchContender> contenders;  ///< one, or two of which the second is compared
  int64_t peak_resident_bytes = 0;         ///< of the process: of all contenders together
};

/// The part of its roofline that a step reached.
double roofline_share(const BenchContender& contender);

/// Throughput of the second contender in units of the first's.
ThroughputRatio ratio_of(const BenchReport& report);

nlohmann::ordered_json to_json(const BenchReport& report);
/// A table for 80 columns.
std::string text(const BenchReport& report);

}  // namespace fullbore
