#pragma once
#include <spdlog/logger.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/monitor/component_times.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/json_lines.h"
#include "fullbore/monitor/metric_sinks.h"
#include "fullbore/monitor/phase_clock.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/sensor_log.h"
#include "fullbore/monitor/step_meter.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/run_position.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

/// What the reporter must know to turn steps into rates.
struct RunScale {
  int64_t total_steps = 0;
  int64_t parameters = 0;
  double flops_per_step = 0;   ///< of the largest shape of batch
  bool flops_at_most = false;  ///< loops may make fewer iterations than that counts
  /// Of the machine, per second; unknown until it has been measured (RunReporter::measured).
  double peak_flops = RunSummary::kUnknown;
  int64_t planned_bytes = 0;
  int64_t evaluation_interval = 0;  ///< 0: none
  std::string judge = {};           ///< the metric that tells the best; empty: the loss
  std::string sample_unit = {};     ///< TrainingJob::sample_unit
  std::vector<ShownMetric> shown = {};
  RunMaker maker = {};
};

/// What a line about a step tells beside its results.
struct StepDetails {
  double step_seconds = 0;
  double wait_seconds = 0;  ///< for its batch
  Detail detail = Detail::info;
  int64_t arena_bytes = 0;
  std::vector<ComponentTime> components = {};  ///< empty: not recorded
};

/// Tells people and files how a run goes: the live line, log.txt, metrics.jsonl, summary.json.
/// Changes nothing that is computed.
class RunReporter {
 public:
  using Clock = std::chrono::steady_clock;

  /// `start`: when the command was given, for the times of the summary.
  RunReporter(const RunDirectory& run, Console& console, Clock::time_point start);
  ~RunReporter();
  RunReporter(const RunReporter&) = delete;
  RunReporter& operator=(const RunReporter&) = delete;

  spdlog::logger& log() { return *log_; }
  Console& console() { return console_; }

  /// A part of the start ends now; the next one begins. The first began with the command.
  void started(std::string_view part);

  /// Before the first step after a start or a resume. Metrics that lie beyond what was restored are
  /// cut off. What is not as the run left it, of summary, log and metrics, is told.
  void begin(const RunScale& scale, const RunPosition& restored,
             const MetricSinkOptions& sinks = {}, const SensorLogOptions& sensors = {});

  /// Instead of begin(), of a run that turns out to be complete: its summary says so already, unless
  /// it was killed between its last checkpoint and its last words.
  void found_complete(const RunScale& scale, const RunPosition& restored);

  /// The first step is made: where the start went is told.
  void first_step_made();
  /// The machine's peak is known; resident memory has been at `resident_bytes` by then, and is counted anew.
  void measured(double peak_flops, int64_t resident_bytes);

  const std::vector<StartPart>& start_parts() const { return start_parts_; }
  /// What the run's time goes to: whoever does something else says so.
  PhaseClock& phases() { return phases_; }
  int64_t planned_bytes() const { return scale_.planned_bytes; }

  /// What lines about steps tell beside the loss; empty: nothing.
  void tell(StepFigures figures) { figures_ = std::move(figures); }
  /// Step number `step` was made. `results` is asked only where a line is drawn.
  void step_done(int64_t step, double loss, const StepWork& work,
                 const std::function<StepResults()>& results = {});
  /// One line of metrics about the step just made and, where there is no live line, of the log.
  void log_step(const StepResults& results, const StepDetails& details);

  /// The step just made was skipped.
  void step_skipped(const std::string& warning);
  void evaluating(uint64_t done, uint64_t batches);
  void evaluated(const RunPosition& record, const StepResults& metrics, double seconds);

  /// Metrics written so far reach the disk. From any thread.
  Status sync_metrics();
  /// What saving has cost the loop, for the summary.
  void saved(int64_t saves, double stall_seconds);

  /// Writes the summary and says the last words.
  void finish(const std::string& status, const std::string& error = "");

 private:
  void stand_at(const RunScale& scale, const RunPosition& restored);
  void note_lost_console();
  void open_sensors(const SensorLogOptions& options);
  void tell_news();
  double seconds_since_start() const;
  void update_rates();
  double seconds_left() const;
  void write_metrics(const nlohmann::ordered_json& record);
  void note_phases();
  std::string add_details(nlohmann::ordered_json& record, const StepResults& results,
                          const StepDetails& details) const;
  void trim_metrics(const RunPosition& restored, const nlohmann::json& summary);
  void check_metrics(const nlohmann::json& summary);
  void take_step_times(const nlohmann::json& summary);
  /// The summary there is; an empty object where there is none, or it is damaged, which is told.
  nlohmann::json check_summary_and_log();
  void write_summary(RunSummary summary);
  RunSummary summary(const std::string& status, const std::string& error) const;

  const RunDirectory& run_;
  Console& console_;
  Clock::time_point start_;
  PhaseClock phases_;
  double phases_noted_ = 0;  ///< seconds since the start
  std::shared_ptr<spdlog::logger> log_;
  std::optional<JsonLines> metrics_;
  MetricSinks sinks_;
  std::unique_ptr<SensorLog> sensors_;  ///< null: none are sampled
  RunScale scale_;
  Progress progress_;
  StepFigures figures_;
  StepMeter meter_;
  StepHistogram step_times_;
  double best_loss_ = RunSummary::kUnknown;
  int64_t best_step_ = -1;
  double evaluation_seconds_ = 0;
  int64_t evaluations_ = 0;
  int64_t saves_ = 0;
  double save_stall_seconds_ = 0;
  int64_t skipped_steps_ = 0;
  double seconds_to_first_step_ = RunSummary::kUnknown;
  std::vector<StartPart> start_parts_;
  double parts_seconds_ = 0;         ///< of all parts so far
  int64_t earlier_peak_bytes_ = 0;   ///< resident, before that was counted anew
  int64_t found_lines_ = 0;          ///< of metrics, in a run that is complete already
  std::optional<RunSummary> ended_;  ///< the last summary
  bool console_lost_ = false;
};

}  // namespace fullbore
