#include "fullbore/train/run_reporter.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/csv.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_log.h"
#include "fullbore/monitor/summary_file.h"

namespace fullbore {

namespace {

/// -1: it does not tell.
int64_t metric_lines_of(const nlohmann::json& summary) {
  const auto lines = summary.find("metric_lines");
  return lines != summary.end() && lines->is_number_unsigned() ? lines->get<int64_t>() : -1;
}

}  // namespace

RunReporter::RunReporter(const RunDirectory& run, Console& console, Clock::time_point start)
    : run_(run),
      console_(console),
      start_(start),
      phases_(start),
      log_(make_run_log(console, run.log()).take_or_throw()) {}

void RunReporter::stand_at(const RunScale& scale, const RunPosition& restored) {
  scale_ = scale;
  best_loss_ = restored.best_validation_loss;
  best_step_ = restored.best_step;
  skipped_steps_ = restored.skipped_steps;
  progress_.step = restored.step;
  progress_.train_loss = restored.train_loss;
  progress_.validation_loss = restored.validation_loss;
  progress_.total_steps = scale.total_steps;
  progress_.planned_bytes = scale.planned_bytes;
  progress_.sample_unit = scale.sample_unit;
}

void RunReporter::found_complete(const RunScale& scale, const RunPosition& restored) {
  const nlohmann::json json = check_summary_and_log();
  check_metrics(json);
  if (json.contains("status") && json["status"] == "completed") return;
  stand_at(scale, restored);
  take_step_times(json);
  write_summary(summary("completed", ""));
}

nlohmann::json RunReporter::check_summary_and_log() {
  FileStatus status;
  if (system_files().status(run_.summary(), status) != 0) return nlohmann::json::object();
  Result<SummaryFile> found = read_summary(run_.summary());
  if (!found.ok()) {
    log_->warn("{}. It is written anew.", found.error());
    return nlohmann::json::object();
  }
  nlohmann::json& json = found.value().json;
  if (!found.value().is_checked)
    log_->info("{} has no checksum: an older version wrote it", run_.summary());
  const auto bytes = json.find("log_bytes");
  const auto checksum = json.find("log_checksum");
  if (bytes == json.end() || checksum == json.end() || !bytes->is_number_unsigned()) return json;
  const Result<std::string> now = checksum_of_start(run_.log(), *bytes);
  if (!now.ok())
    log_->warn("{}: it was changed or cut off since the run wrote it: {}", run_.log(), now.error());
  else if (now.value() != *checksum)
    log_->warn("{}: it was changed since the run wrote it, within its first {} bytes", run_.log(),
               bytes->get<int64_t>());
  return json;
}

void RunReporter::check_metrics(const nlohmann::json& summary) {
  const Result<JsonLinesFile> metrics = read_json_lines(run_.metrics());
  if (!metrics.ok()) {
    log_->warn("{}", metrics.error());
    return;
  }
  const JsonLinesFile& file = metrics.value();
  for (const std::string& problem : file.problems) log_->warn("{}", problem);
  const int64_t written = metric_lines_of(summary);
  if (file.unchecked > 0)
    log_->info("{}: {} lines have no checksum: an older version wrote them", run_.metrics(),
               file.unchecked);
  found_lines_ = std::max(file.lines, written);
  if (file.is_torn || file.lines < written)
    log_->warn("{}: it is cut off: {} of {} lines are there", run_.metrics(), file.lines, written);
}

void RunReporter::started(std::string_view part) {
  const double now = seconds_since_start();
  start_parts_.push_back({std::string(part), now - parts_seconds_});
  parts_seconds_ = now;
}

void RunReporter::trim_metrics(const RunPosition& restored, const nlohmann::json& summary) {
  const auto kept = [&](const nlohmann::ordered_json& record) {
    const auto kind = record.find("kind");
    const auto at = record.find("step");
    if (kind == record.end() || at == record.end() || !at->is_number_integer()) return false;
    return at->get<int64_t>() <= (*kind == "evaluation" ? restored.evaluated_step : restored.step);
  };
  const TrimmedLines trimmed = trim_json_lines(run_.metrics(), kept).take_or_throw();
  for (const std::string& problem : trimmed.problems) log_->warn("{}", problem);
  if (!trimmed.copy.empty())
    log_->warn("{} had damaged lines: as it was it is kept as {}", run_.metrics(), trimmed.copy);
  if (trimmed.unchecked > 0)
    log_->info("{}: {} lines have no checksum: an older version wrote them", run_.metrics(),
               trimmed.unchecked);
  // A summary knows of lines that a checkpoint does not: those behind it, which are dropped here.
  if (const int64_t written = metric_lines_of(summary); trimmed.kept + trimmed.dropped < written)
    log_->warn("{}: {} of the {} lines that were written are there", run_.metrics(),
               trimmed.kept + trimmed.dropped, written);
  if (trimmed.dropped > 0)
    log_->info("dropped {} lines of metrics that the checkpoint does not know of", trimmed.dropped);
}

void RunReporter::begin(const RunScale& scale, const RunPosition& restored,
                        const MetricSinkOptions& sinks, const SensorLogOptions& sensors) {
  stand_at(scale, restored);
  const nlohmann::json before = check_summary_and_log();
  trim_metrics(restored, before);
  take_step_times(before);
  metrics_.emplace(JsonLines::open(run_.metrics()).take_or_throw());
  sinks_.open(sinks, run_.tensorboard(), run_.path(), restored.step).take_or_throw();
  if (sinks_.port() > 0)
    log_->info("metrics for Prometheus at http://127.0.0.1:{}/metrics", sinks_.port());
  if (sensors.enabled) open_sensors(sensors);
  write_summary(summary("running", ""));
}

/// Those of before. Steps that are made again are counted again: they took their time.
void RunReporter::take_step_times(const nlohmann::json& summary) {
  const auto found = summary.find("step_times");
  if (found == summary.end()) return;
  Result<StepHistogram> times = StepHistogram::from_json(*found);
  if (times.ok())
    step_times_.merge(times.value());
  else
    log_->warn("{}: {}; they begin anew", run_.summary(), times.error());
}

// A run without samples of its sensors is a run all the same.
void RunReporter::open_sensors(const SensorLogOptions& options) {
  Result<std::unique_ptr<SensorLog>> opened = SensorLog::open(
      run_.path(), options, progress_.step, start_, system_files(),
      [this](const std::vector<SensorReading>& readings) { sinks_.write_sensors(readings); });
  if (opened.ok())
    sensors_ = std::move(opened).value();
  else
    log_->warn("sensors are not sampled: {}", opened.error());
}

void RunReporter::tell_news() {
  for (const std::string& notice : sinks_.take_notices()) log_->warn("{}", notice);
  if (!sensors_ || !sensors_->has_news()) return;
  const SensorLog::News news = sensors_->take_news();
  for (const std::string& warning : news.warnings) log_->warn("{}", warning);
  for (const Alarm& alarm : news.alarms) {
    log_->log(alarm.raised ? spdlog::level::warn : spdlog::level::info, "step {}: {}", alarm.step,
              alarm.message);
    write_metrics({{"kind", "alarm"},
                   {"step", alarm.step},
                   {"cause", alarm.cause},
                   {"raised", alarm.raised},
                   {"value", alarm.value},
                   {"limit", alarm.limit},
                   {"unit", alarm.unit},
                   {"message", alarm.message},
                   {"seconds", alarm.seconds}});
  }
}

void RunReporter::first_step_made() {
  started("step");
  seconds_to_first_step_ = parts_seconds_;
  std::string parts;
  for (const StartPart& part : start_parts_)
    parts +=
        fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, duration_text(part.seconds));
  log_->info("first step after {} ({})", duration_text(seconds_to_first_step_), parts);
}

void RunReporter::measured(double peak_flops, int64_t resident_bytes) {
  scale_.peak_flops = peak_flops;
  earlier_peak_bytes_ = std::max(earlier_peak_bytes_, resident_bytes);
}

void RunReporter::step_done(int64_t step, double loss, const StepWork& work,
                            const std::function<StepResults()>& results) {
  note_lost_console();
  meter_.add(work);
  step_times_.add(work.step_seconds + work.wait_seconds);
  progress_.phase.clear();
  progress_.step = step;
  progress_.train_loss = loss;
  if (sensors_) sensors_->at_step(step);
  tell_news();
  if (console_.live_due()) {
    update_rates();
    if (figures_ && results) progress_.figures = figures_(results(), progress_.validation_loss);
    console_.live(progress_);
  }
}

void RunReporter::log_step(const StepResults& results, const StepDetails& details) {
  update_rates();
  if (figures_) progress_.figures = figures_(results, progress_.validation_loss);
  nlohmann::ordered_json record = {{"kind", "train"}, {"step", progress_.step}};
  progress_.shares.clear();
  for (const auto& [name, value] : results) {
    record[name] = value;
    for (const ShownMetric& shown : scale_.shown)
      if (shown.name == name) progress_.shares.emplace_back(shown.label, value);
  }
  // What is counted in samples has no tokens.
  if (scale_.sample_unit.empty())
    record["tokens_per_second"] = progress_.tokens_per_second;
  else
    record["samples_per_second"] = progress_.samples_per_second;
  record["utilisation"] = progress_.utilisation;
  record["data_wait_share"] = progress_.data_wait_share;
  record["seconds"] = seconds_since_start();
  std::string words = progress_text(progress_);
  const bool debug = details.detail >= Detail::debug_training;
  if (debug) words += add_details(record, results, details);
  write_metrics(record);
  note_phases();
  // The live line says it already where there is one.
  log_->log(console_.terminal() && !debug ? spdlog::level::debug : spdlog::level::info, "{}",
            words);
}

/// What the time went to so far, for who watches the run; its summary has all of it.
void RunReporter::note_phases() {
  constexpr double kSecondsApart = 10;
  const double now = seconds_since_start();
  if (now - phases_noted_ < kSecondsApart) return;
  phases_noted_ = now;
  nlohmann::ordered_json record = {{"kind", "phases"}, {"step", progress_.step}};
  const PhaseSeconds seconds = phases_.seconds();
  for (size_t i = 0; i < kRunPhases; ++i)
    if (const auto phase = static_cast<RunPhase>(i); seconds[phase] > 0)
      record[fmt::format("{}_seconds", run_phase_name(phase))] = seconds[phase];
  write_metrics(record);
}

/// To the record of a step, and as words.
std::string RunReporter::add_details(nlohmann::ordered_json& record, const StepResults& results,
                                     const StepDetails& details) const {
  std::string words;
  for (const auto& [name, value] : results)
    if (name != "loss") words += fmt::format("  {} {:.4g}", name, value);
  record["step_seconds"] = details.step_seconds;
  record["wait_seconds"] = details.wait_seconds;
  words += fmt::format("  step {}, wait {}", duration_text(details.step_seconds),
                       duration_text(details.wait_seconds));
  if (details.detail < Detail::debug_performance) return words;
  record["resident_bytes"] = progress_.resident_bytes;
  record["planned_bytes"] = scale_.planned_bytes;
  record["arena_bytes"] = details.arena_bytes;
  words += fmt::format("  arena {}", bytes_text(static_cast<double>(details.arena_bytes)));
  const char* comma = "; ms: ";
  for (const ComponentTime& each : details.components) {
    record["ms/" + each.component] = each.seconds * 1e3;
    words +=
        fmt::format("{}{} {:.2f}", std::exchange(comma, ", "), each.component, each.seconds * 1e3);
  }
  return words;
}

void RunReporter::step_skipped(const std::string& warning) {
  ++skipped_steps_;
  log_->warn("{}", warning);
}

Status RunReporter::sync_metrics() { return metrics_ ? metrics_->sync() : success(); }

void RunReporter::saved(int64_t saves, double stall_seconds) {
  saves_ = saves;
  save_stall_seconds_ = stall_seconds;
}

void RunReporter::evaluating(uint64_t done, uint64_t batches) {
  tell_news();
  progress_.phase = fmt::format("evaluating {}/{}", done, batches);
  console_.live(progress_);
}

void RunReporter::evaluated(const RunPosition& position, const StepResults& metrics,
                            double seconds) {
  if (meter_.steps() == 0) started("evaluation");
  ++evaluations_;
  evaluation_seconds_ += seconds;
  progress_.phase.clear();
  progress_.validation_loss = position.validation_loss;
  best_loss_ = position.best_validation_loss;
  best_step_ = position.best_step;
  const bool best = position.best_step == position.step;
  nlohmann::ordered_json record = {{"kind", "evaluation"},
                                   {"step", position.step},
                                   {"validation_loss", position.validation_loss},
                                   {"best", best}};
  std::string words;
  for (const auto& [name, value] : metrics) {
    record["validation_" + name] = value;
    if (name == scale_.judge) words += fmt::format("  {} {:.4f}", name, value);
    for (const ShownMetric& shown : scale_.shown)
      if (shown.name == name && name != scale_.judge)
        words += fmt::format("  {} {:.1f}%", shown.label, value * 100);
  }
  record["seconds"] = seconds_since_start();
  write_metrics(record);
  log_->info("step {}/{}  validation loss {:.4f}{}{}", position.step, scale_.total_steps,
             position.validation_loss, words,
             best ? "  best" : fmt::format("  (best {:.4f} at step {})", best_loss_, best_step_));
}

void RunReporter::finish(const std::string& status, const std::string& error) {
  console_.clear();
  try {
    tell_news();
  } catch (const DataError& failure) {
    log_->warn("{}", failure.what());
  }
  sensors_.reset();
  sinks_.finish(status);
  for (const std::string& notice : sinks_.take_notices()) log_->warn("{}", notice);
  ended_ = summary(status, error);
  try {
    write_summary(*ended_);
  } catch (const DataError& failure) {
    log_->warn("{}", failure.what());
  }
  note_lost_console();
  if (!error.empty()) {
    log_->debug("{}: {}", status, error);  // the console gets it from whoever catches it
    return;
  }
  const RunSummary& result = *ended_;
  std::string text = fmt::format("{} at step {}/{} after {}", status, result.steps,
                                 scale_.total_steps, duration_text(result.wall_seconds));
  if (meter_.steps() > 0)
    text += fmt::format(
        "  {}{}  {} resident at most",
        scale_.sample_unit.empty()
            ? count_text(result.tokens_per_second) + " tok/s"
            : fmt::format("{} {}/s", count_text(result.samples_per_second), scale_.sample_unit),
        std::isnan(result.utilisation) ? ""
                                       : fmt::format("  {:.1f}% of peak", result.utilisation * 100),
        bytes_text(static_cast<double>(result.peak_bytes)));
  log_->info("{}", text);
  note_lost_console();
}

// A run does not end because nobody can read its lines.
void RunReporter::note_lost_console() {
  if (console_lost_ || console_.failure().empty()) return;
  console_lost_ = true;
  log_->warn("cannot write standard error: {}; the run goes on without it", console_.failure());
}

// What was said since the summary was written is part of the log that it is about.
RunReporter::~RunReporter() {
  if (!ended_) return;
  try {
    write_summary(*ended_);
  } catch (const std::exception&) {
    // There is one, of a shorter log, and whoever ends a run has been told why.
  }
}

void RunReporter::write_summary(RunSummary summary) {
  summary.metric_lines = metrics_ ? metrics_->lines() : found_lines_;
  log_->flush();
  FileStatus status;
  if (system_files().status(run_.log(), status) == 0 && status.is_file) {
    const auto bytes = static_cast<int64_t>(status.bytes);
    if (Result<std::string> checksum = checksum_of_start(run_.log(), bytes); checksum.ok()) {
      summary.log_bytes = bytes;
      summary.log_checksum = std::move(checksum).value();
    }
  }
  fullbore::write_summary(run_.summary(), summary).take_or_throw();
}

double RunReporter::seconds_since_start() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void RunReporter::update_rates() {
  progress_.tokens_per_second = meter_.recent().tokens_per_second();
  progress_.samples_per_second = meter_.recent().samples_per_second();
  progress_.step_seconds = 1 / meter_.recent().steps_per_second();
  progress_.utilisation = meter_.recent().flops_per_second() / scale_.peak_flops;
  progress_.data_wait_share = meter_.recent().wait_share();
  progress_.resident_bytes = resident_bytes();
  progress_.seconds_left = seconds_left();
}

double RunReporter::seconds_left() const {
  const auto steps = static_cast<double>(scale_.total_steps - progress_.step);
  double seconds = steps / meter_.recent().steps_per_second();
  if (evaluations_ > 0 && scale_.evaluation_interval > 0)
    seconds += steps / static_cast<double>(scale_.evaluation_interval) * evaluation_seconds_ /
               static_cast<double>(evaluations_);
  return seconds;
}

void RunReporter::write_metrics(const nlohmann::ordered_json& record) {
  metrics_->write(record).take_or_throw();
  sinks_.write(record).take_or_throw();
}

RunSummary RunReporter::summary(const std::string& status, const std::string& error) const {
  RunSummary result;
  result.status = status;
  result.error = error;
  result.steps = progress_.step;
  result.final_train_loss = progress_.train_loss;
  result.final_validation_loss = progress_.validation_loss;
  result.best_validation_loss = best_loss_;
  result.best_step = best_step_;
  result.peak_bytes = std::max(earlier_peak_bytes_, peak_resident_bytes());
  result.planned_peak_bytes = scale_.planned_bytes;
  result.parameters = scale_.parameters;
  result.flops_per_step = scale_.flops_per_step;
  result.maker = scale_.maker;
  result.seconds_to_first_step = seconds_to_first_step_;
  result.start = start_parts_;
  result.wall_seconds = seconds_since_start();
  result.phases = phases_.seconds();
  result.skipped_steps = skipped_steps_;
  result.saves = saves_;
  result.save_stall_seconds = save_stall_seconds_;
  result.step_times = step_times_;
  if (meter_.steps() > 0) {
    result.measured_steps = meter_.steps();
    result.measured_seconds = meter_.whole().seconds;
    if (scale_.sample_unit.empty()) {
      result.measured_tokens = meter_.whole().tokens;
      result.tokens_per_second = meter_.whole().tokens_per_second();
    } else {
      result.samples_per_second = meter_.whole().samples_per_second();
    }
    result.utilisation = meter_.whole().flops_per_second() / scale_.peak_flops;
    result.data_wait_share = meter_.whole().wait_share();
  }
  return result;
}

}  // namespace fullbore
