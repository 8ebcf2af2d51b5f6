#pragma once
#include <spdlog/logger.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "fullbore/monitor/console.h"
#include "fullbore/monitor/json_lines.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/step_meter.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {

/// What a step returned, read by the host.
struct StepMetrics {
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
};

/// Where a run stands. Holds no times, so that the checkpoint of a resumed run equals, byte by byte,
/// the uninterrupted run's.
struct RunPosition {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;             ///< steps made; also the position in the training data
  int64_t evaluated_step = -1;  ///< of the last evaluation
  int64_t best_step = -1;
  double train_loss = kUnknown;
  double validation_loss = kUnknown;
  double best_validation_loss = kUnknown;
};

/// What the reporter must know to turn steps into rates.
struct RunScale {
  int64_t total_steps = 0;
  int64_t tokens_per_step = 0;
  int64_t parameters = 0;
  double flops_per_step = 0;
  double peak_flops = 0;  ///< of the machine, per second
  int64_t planned_bytes = 0;
  int64_t evaluation_interval = 0;  ///< 0: none
};

/// Tells people and files how a run goes: the live line, log.txt, metrics.jsonl, summary.json.
/// Changes nothing that is computed.
class RunReporter {
 public:
  using Clock = std::chrono::steady_clock;

  /// `start`: when the command was given, for the times of the summary.
  RunReporter(const RunDirectory& run, Console& console, Clock::time_point start);

  spdlog::logger& log() { return *log_; }
  Console& console() { return console_; }

  /// Before the first step of this session. Metrics that lie beyond what was restored are cut off.
  void begin(const RunScale& scale, const RunPosition& restored);

  /// Step number `step` was made, `step_seconds` long after `wait_seconds` of waiting for data.
  void step_done(int64_t step, const StepMetrics& metrics, double step_seconds,
                 double wait_seconds);
  /// One line of metrics and, where there is no live line, of the log.
  void log_step();

  void evaluating(uint64_t done, uint64_t batches);
  void evaluated(const RunPosition& record, double seconds);

  /// Writes the summary and says the last words.
  void finish(const std::string& status, const std::string& error = "");

 private:
  double seconds_since_start() const;
  void update_rates();
  double seconds_left() const;
  void write_metrics(const nlohmann::ordered_json& record);
  RunSummary summary(const std::string& status, const std::string& error) const;

  const RunDirectory& run_;
  Console& console_;
  Clock::time_point start_;
  std::shared_ptr<spdlog::logger> log_;
  std::optional<JsonLines> metrics_;
  RunScale scale_;
  Progress progress_;
  StepMeter meter_;
  StepMetrics last_;
  double best_loss_ = RunSummary::kUnknown;
  int64_t best_step_ = -1;
  double evaluation_seconds_ = 0;
  int64_t evaluations_ = 0;
  double seconds_to_first_step_ = RunSummary::kUnknown;
};

}  // namespace fullbore
