#include "fullbore/train/run_reporter.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_log.h"

namespace fullbore {

RunReporter::RunReporter(const RunDirectory& run, Console& console, Clock::time_point start)
    : run_(run),
      console_(console),
      start_(start),
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
}

void RunReporter::found_complete(const RunScale& scale, const RunPosition& restored) {
  const Result<std::string> text = read_file(run_.summary());
  const auto json =
      nlohmann::json::parse(text.ok() ? text.value() : "", nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("status") && json["status"] == "completed") return;
  stand_at(scale, restored);
  write_summary(run_.summary(), summary("completed", "")).take_or_throw();
}

void RunReporter::started(std::string_view part) {
  const double now = seconds_since_start();
  start_parts_.push_back({std::string(part), now - parts_seconds_});
  parts_seconds_ = now;
}

void RunReporter::begin(const RunScale& scale, const RunPosition& restored,
                        const MetricSinkOptions& sinks) {
  stand_at(scale, restored);
  const auto kept = [&](const nlohmann::json& record) {
    const auto kind = record.find("kind");
    const auto at = record.find("step");
    if (kind == record.end() || at == record.end() || !at->is_number_integer()) return false;
    return at->get<int64_t>() <= (*kind == "evaluation" ? restored.evaluated_step : restored.step);
  };
  const int64_t dropped = trim_json_lines(run_.metrics(), kept).take_or_throw();
  if (dropped > 0)
    log_->info("dropped {} lines of metrics that the checkpoint does not know of", dropped);
  metrics_.emplace(JsonLines::open(run_.metrics()).take_or_throw());
  sinks_.open(sinks, run_.tensorboard(), run_.path(), restored.step).take_or_throw();
  if (sinks_.port() > 0)
    log_->info("metrics for Prometheus at http://127.0.0.1:{}/metrics", sinks_.port());
  write_summary(run_.summary(), summary("running", "")).take_or_throw();
}

void RunReporter::step_done(int64_t step, double loss, const StepWork& work) {
  if (meter_.steps() == 0) {
    started("step");
    seconds_to_first_step_ = parts_seconds_;
    std::string parts;
    for (const StartPart& part : start_parts_)
      parts +=
          fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, duration_text(part.seconds));
    log_->info("first step after {} ({})", duration_text(seconds_to_first_step_), parts);
  }
  note_lost_console();
  meter_.add(work);
  progress_.phase.clear();
  progress_.step = step;
  progress_.train_loss = loss;
  if (console_.live_due()) {
    update_rates();
    console_.live(progress_);
  }
}

void RunReporter::log_step(const StepResults& results) {
  update_rates();
  nlohmann::ordered_json record = {{"kind", "train"}, {"step", progress_.step}};
  for (const auto& [name, value] : results) record[name] = value;
  record["tokens_per_second"] = progress_.tokens_per_second;
  record["utilisation"] = progress_.utilisation;
  record["data_wait_share"] = progress_.data_wait_share;
  record["seconds"] = seconds_since_start();
  write_metrics(record);
  // The live line says it already where there is one.
  log_->log(console_.terminal() ? spdlog::level::debug : spdlog::level::info, "{}",
            progress_text(progress_));
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
    if (name == scale_.judge) words = fmt::format("  {} {:.4f}", name, value);
  }
  record["seconds"] = seconds_since_start();
  write_metrics(record);
  log_->info("step {}/{}  validation loss {:.4f}{}{}", position.step, scale_.total_steps,
             position.validation_loss, words,
             best ? "  best" : fmt::format("  (best {:.4f} at step {})", best_loss_, best_step_));
}

void RunReporter::finish(const std::string& status, const std::string& error) {
  console_.clear();
  const RunSummary result = summary(status, error);
  const Status written = write_summary(run_.summary(), result);
  if (!written) log_->warn("{}", written.error());
  note_lost_console();
  if (!error.empty()) {
    log_->debug("{}: {}", status, error);  // the console gets it from whoever catches it
    return;
  }
  std::string text = fmt::format("{} at step {}/{} after {}", status, result.steps,
                                 scale_.total_steps, duration_text(result.wall_seconds));
  if (meter_.steps() > 0)
    text += fmt::format("  {} tok/s  {:.1f}% of peak  {} resident at most",
                        count_text(result.tokens_per_second), result.utilisation * 100,
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

double RunReporter::seconds_since_start() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void RunReporter::update_rates() {
  progress_.tokens_per_second = meter_.recent().tokens_per_second();
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
  result.peak_bytes = peak_resident_bytes();
  result.planned_peak_bytes = scale_.planned_bytes;
  result.parameters = scale_.parameters;
  result.flops_per_step = scale_.flops_per_step;
  result.seconds_to_first_step = seconds_to_first_step_;
  result.start = start_parts_;
  result.wall_seconds = seconds_since_start();
  result.skipped_steps = skipped_steps_;
  result.saves = saves_;
  result.save_stall_seconds = save_stall_seconds_;
  if (meter_.steps() > 0) {
    result.tokens_per_second = meter_.whole().tokens_per_second();
    result.utilisation = meter_.whole().flops_per_second() / scale_.peak_flops;
    result.data_wait_share = meter_.whole().wait_share();
  }
  return result;
}

}  // namespace fullbore
