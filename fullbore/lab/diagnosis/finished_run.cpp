#include "fullbore/lab/diagnosis/finished_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/processor.h"
#include "fullbore/base/program_name.h"
#include "fullbore/base/threads.h"
#include "fullbore/lab/diagnosis/idle_parameters.h"
#include "fullbore/monitor/csv.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/monitor/summary_file.h"
#include "fullbore/train/run_checkpoints.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

template <class Json>
double number(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->template get<double>()
                                                   : RunFacts::kUnknown;
}

/// A count, or -1 where there is none.
template <class Json>
int64_t count(const Json& json, const std::string& key) {
  constexpr double kMost = 9e15;  // whole numbers that a double tells apart
  const double found = number(json, key);
  return found >= 0 && found < kMost ? static_cast<int64_t>(found) : -1;
}

/// Of a run of some million years at most: whatever a file says, sums of them are finite.
bool is_duration(double seconds) { return seconds >= 0 && seconds < 1e14; }

PhaseSeconds phases_of(const nlohmann::json& summary, const std::string& path) {
  const auto phases = summary.find("phase_seconds");
  if (phases == summary.end() || !phases->is_object())
    throw DataError(fmt::format(
        "{}: it has no phase_seconds: an older version wrote it. Diagnose the configuration of the "
        "run instead, which is measured: {} diagnose CONFIG.",
        path, program_name()));
  PhaseSeconds seconds;
  for (size_t i = 0; i < kRunPhases; ++i) {
    const std::string name(run_phase_name(static_cast<RunPhase>(i)));
    const double value = number(*phases, name);
    if (!is_duration(value))
      throw DataError(fmt::format("{}: phase_seconds: {}: seconds were expected", path, name));
    seconds.seconds[i] = value;
  }
  return seconds;
}

std::vector<StartPart> start_of(const nlohmann::json& summary) {
  std::vector<StartPart> parts;
  const auto start = summary.find("start_seconds");
  if (start == summary.end() || !start->is_object()) return parts;
  for (const auto& [name, value] : start->items())
    if (const double taken = number(*start, name); is_duration(taken))
      parts.push_back({name, taken});
  return parts;
}

/// Of all saves, the first one, before the first step, among them; 0 where it is not known.
double stall_of(const nlohmann::json& summary) {
  const double seconds = number(summary, "save_stall_seconds");
  return is_duration(seconds) ? seconds : 0;
}

/// Curves and components of steps, out of metrics.jsonl.
class Metrics {
 public:
  explicit Metrics(RunFacts& facts) : facts_(facts) {}

  void add(const nlohmann::ordered_json& record) {
    const auto kind = record.find("kind");
    const int64_t step = count(record, "step");
    if (kind == record.end() || !kind->is_string() || step < 0) return;
    const auto point = [&](Curve& curve, const char* key) {
      if (const double value = number(record, key); std::isfinite(value))
        curve.push_back({step, value});
    };
    if (*kind == "evaluation") point(facts_.validation_loss, "validation_loss");
    if (*kind != "train") return;
    point(facts_.loss, "loss");
    point(facts_.loss_scale, "loss_scale");
    add_components(record);
  }

  RecordedSteps recorded() const {
    RecordedSteps steps{.step_seconds = step_seconds_};
    for (const auto& [name, seconds] : components_) {
      if (name == "idle")
        steps.idle_seconds = seconds;
      else
        steps.kernels.push_back({.name = name,
                                 .seconds = seconds,
                                 .launches = RunFacts::kUnknown,
                                 .roofline_seconds = RunFacts::kUnknown,
                                 .memory_seconds = RunFacts::kUnknown});
    }
    return steps;
  }

 private:
  void add_components(const nlohmann::ordered_json& record) {
    constexpr std::string_view kPrefix = "ms/";
    bool told = false;
    for (const auto& [key, value] : record.items()) {
      if (!key.starts_with(kPrefix) || !value.is_number()) continue;
      const double seconds = 1e-3 * value.template get<double>();
      if (!is_duration(seconds)) continue;
      components_[key.substr(kPrefix.size())] += seconds;
      told = true;
    }
    const double seconds = number(record, "step_seconds");
    if (told && is_duration(seconds)) step_seconds_ += seconds;
  }

  RunFacts& facts_;
  std::map<std::string, double> components_;
  double step_seconds_ = 0;
};

void read_moments(const std::string& run, FinishedRun& finished) {
  const std::string last = run + "/checkpoints/last";
  const Result<CheckpointFolder> folder = open_checkpoint_folder(last);
  if (!folder.ok()) {
    finished.notes.push_back(folder.error());
    return;
  }
  Result<std::vector<std::string>> idle = idle_parameters(folder.value());
  if (idle.ok())
    finished.facts.idle_parameters = std::move(idle).value();
  else
    finished.notes.push_back(idle.error());
}

}  // namespace

FinishedRun read_finished_run(const std::string& run) {
  FinishedRun finished;
  RunFacts& facts = finished.facts;
  const std::string path = run + "/summary.json";
  const SummaryFile file = read_summary(path).take_or_throw();
  const nlohmann::json& summary = file.json;
  const PhaseSeconds phases = phases_of(summary, path);
  StoredConfig stored = load_stored_config(run + '/' + RunDirectory::kConfig);
  facts.config = std::move(stored.config);
  if (const auto status = summary.find("status"); status != summary.end() && status->is_string())
    finished.status = status->get<std::string>();
  if (finished.status == "running")
    finished.notes.push_back(
        "the summary is from the start of the run: it is still going on, or was killed");
  Metrics metrics(facts);
  const Result<JsonLinesFile> lines = read_json_lines(run + "/metrics.jsonl");
  if (!lines.ok()) {
    finished.notes.push_back(lines.error());
  } else {
    for (const nlohmann::ordered_json& record : lines.value().records) metrics.add(record);
    finished.notes.insert(finished.notes.end(), lines.value().problems.begin(),
                          lines.value().problems.end());
  }
  facts.steps = std::max<int64_t>(0, count(summary, "steps"));
  facts.skipped_steps = std::max<int64_t>(0, count(summary, "skipped_steps"));
  facts.best_step = count(summary, "best_step");
  facts.planned_bytes = number(summary, "planned_peak_bytes");
  facts.resident_bytes = number(summary, "peak_bytes");
  facts.fallbacks = fallbacks_of(summary);
  finished.utilisation = number(summary, "utilisation");
  const double wall = number(summary, "wall_seconds");
  facts.measured = attribute(is_duration(wall) ? wall : phases.sum(), phases, start_of(summary),
                             metrics.recorded(), stall_of(summary));
  facts.whole = facts.measured;
  facts.processors = available_processors();
  facts.threads = facts.config.engine.threads > 0 ? static_cast<int>(facts.config.engine.threads)
                                                  : facts.processors;
  facts.memory_bytes = static_cast<double>(memory_limit_bytes());
  facts.native_bf16 = this_processor().avx512_bf16;
  facts.inactive = inactive_switches(facts.config, {.native_bf16 = facts.native_bf16,
                                                    .passes = {},
                                                    .all_passes = {},
                                                    .makes_batches = false,
                                                    .has_validation = true});
  read_moments(run, finished);
  return finished;
}

}  // namespace fullbore
