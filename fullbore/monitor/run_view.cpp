#include "fullbore/monitor/run_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/monitor/summary_file.h"

namespace fullbore {
namespace {

// More points than any screen has columns; a curve that has more loses every second one.
constexpr size_t kMostPoints = 4096;
constexpr size_t kMostAlarms = 8;
constexpr size_t kMostPhases = 16;
enum : size_t { kTraining, kValidation };

double number(const nlohmann::ordered_json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

std::string word(const nlohmann::ordered_json& record, const char* key) {
  constexpr size_t kMostBytes = 200;
  const auto found = record.find(key);
  return found != record.end() && found->is_string()
             ? excerpt(found->get_ref<const std::string&>(), kMostBytes)
             : "";
}

/// A share or a rate as it may be shown: what is not known is -1.
double known(double value) { return std::isfinite(value) && value >= 0 ? value : -1; }

void add_point(ChartCurve& curve, double x, double y) {
  if (!std::isfinite(y)) return;
  if (curve.points.size() >= kMostPoints) {
    size_t kept = 0;
    for (size_t i = 0; i < curve.points.size(); i += 2) curve.points[kept++] = curve.points[i];
    curve.points.resize(kept);
  }
  curve.points.emplace_back(x, y);
}

}  // namespace

RunView::RunView(std::string folder, int64_t total_steps)
    : folder_(std::move(folder)),
      total_steps_(total_steps),
      metrics_(folder_ + "/metrics.jsonl"),
      sensors_(folder_ + '/' + sensor_file_name(1)) {
  forget_metrics();
}

void RunView::forget_metrics() {
  progress_ = {};
  progress_.total_steps = total_steps_;
  curves_ = {{"training", {}}, {"validation", {}}};
  alarms_.clear();
  phases_.clear();
  last_step_ = 0;
  last_seconds_ = 0;
}

bool RunView::update() {
  FileStatus status;
  is_gone_ = system_files().status(folder_, status) != 0 || !status.is_folder;
  if (is_gone_) return false;
  const FileTail::News news = metrics_.read();
  if (news.restarted) forget_metrics();
  for (const std::string& line : news.lines) take_metrics(line);
  const bool more = update_sensors();
  update_summary();
  return news.more || more;
}

void RunView::take_metrics(const std::string& line) {
  const Result<nlohmann::ordered_json> parsed = parse_ordered_json(line);
  if (!parsed.ok() || !parsed.value().is_object()) return;
  const nlohmann::ordered_json& record = parsed.value();
  const std::string kind = word(record, "kind");
  const double at = number(record, "step");
  if (!(at >= 0 && at < 1e15)) return;
  const auto step = static_cast<int64_t>(at);
  if (kind == "alarm") {
    const auto raised = record.find("raised");
    alarms_.push_back({step, raised != record.end() && raised->is_boolean() && raised->get<bool>(),
                       word(record, "message")});
    if (alarms_.size() > kMostAlarms) alarms_.pop_front();
    return;
  }
  if (kind == "evaluation") {
    progress_.validation_loss = number(record, "validation_loss");
    add_point(curves_[kValidation], at, progress_.validation_loss);
    return;
  }
  if (kind == "phases") take_phases(record, "_seconds");
  if (kind != "train") return;
  progress_.step = step;
  progress_.train_loss = number(record, "loss");
  progress_.tokens_per_second = known(number(record, "tokens_per_second"));
  progress_.samples_per_second = known(number(record, "samples_per_second"));
  if (progress_.samples_per_second >= 0) progress_.sample_unit = "samples";
  progress_.utilisation = known(number(record, "utilisation"));
  progress_.data_wait_share = known(number(record, "data_wait_share"));
  add_point(curves_[kTraining], at, progress_.train_loss);
  const double seconds = number(record, "seconds");
  // A run that was resumed counts its seconds anew.
  if (step > last_step_ && seconds > last_seconds_ && last_seconds_ > 0) {
    progress_.step_seconds = (seconds - last_seconds_) / static_cast<double>(step - last_step_);
    if (total_steps_ > 0)
      progress_.seconds_left =
          static_cast<double>(std::max<int64_t>(total_steps_ - step, 0)) * progress_.step_seconds;
  }
  last_step_ = step;
  last_seconds_ = std::isfinite(seconds) ? seconds : 0;
}

bool RunView::update_sensors() {
  constexpr int kMostFiles = 1000;
  for (;;) {
    FileTail::News news = sensors_.read();
    if (news.restarted) has_header_ = false;
    for (const std::string& line : news.lines) {
      if (!has_header_) {
        Result<SensorColumns> columns = SensorColumns::parse(line);
        if (!columns.ok()) return false;
        columns_ = std::move(columns).value();
        has_header_ = true;
      } else if (std::optional<SensorRow> row = columns_.row(line)) {
        last_row_ = *std::move(row);
      }
    }
    if (news.more) return true;
    // Where the hardware has changed there is another file.
    const std::string next = folder_ + '/' + sensor_file_name(sensor_file_ + 1);
    FileStatus status;
    if (sensor_file_ >= kMostFiles || system_files().status(next, status) != 0) break;
    ++sensor_file_;
    sensors_ = FileTail(next);
    has_header_ = false;
    columns_ = {};
    last_row_ = {};
  }
  const int resident = columns_.find("process.memory.resident [MiB]");
  if (resident >= 0 && static_cast<size_t>(resident) < last_row_.values.size()) {
    const double mib = last_row_.values[static_cast<size_t>(resident)];
    progress_.resident_bytes = mib >= 0 && mib < 1e9 ? static_cast<int64_t>(mib * 1048576) : -1;
  }
  return false;
}

void RunView::update_summary() {
  const Result<SummaryFile> summary = read_summary(folder_ + "/summary.json");
  if (!summary.ok()) return;
  const nlohmann::ordered_json json = summary.value().json;
  status_ = word(json, "status");
  const auto phases = json.find("phase_seconds");
  // While it runs, its records are newer.
  if (status_ == "running" || phases == json.end() || !phases->is_object()) return;
  take_phases(*phases, "");
  progress_.seconds_left = -1;
}

void RunView::take_phases(const nlohmann::ordered_json& seconds, std::string_view suffix) {
  phases_.clear();
  for (const auto& [key, value] : seconds.items()) {
    std::string_view name = key;
    if (!name.ends_with(suffix) || !value.is_number() || !(value.get<double>() > 0)) continue;
    name.remove_suffix(suffix.size());
    if (phases_.size() < kMostPhases) phases_.emplace_back(excerpt(name, 20), value.get<double>());
  }
}

}  // namespace fullbore
