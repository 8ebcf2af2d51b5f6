#include "fullbore/lab/quality/completed_run.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/program_name.h"
#include "fullbore/monitor/json_line_reader.h"
#include "fullbore/monitor/summary_file.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/run_config.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / RunDirectory::kConfig, error);
}

/// Runs in the folder, or in folders of it.
void find_runs(const fs::path& folder, int depth, std::vector<std::string>& found) {
  if (is_run(folder)) return found.push_back(folder.string());
  std::error_code error;
  if (depth == 0) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error))
      find_runs(entry.path(), depth - 1, found);
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t result{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0)
    paths.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  globfree(&result);
  return paths;
}

/// What `lab ablate` leaves, or a part of it.
bool is_ablation(const std::string& named) {
  std::error_code error;
  for (fs::path folder = named; !folder.empty() && folder != folder.parent_path();
       folder = folder.parent_path())
    if (fs::is_regular_file(folder / "plan.json", error) &&
        fs::is_directory(folder / "trials", error) && fs::is_directory(folder / "runs", error))
      return true;
  return false;
}

/// The mean of what the lines about the last tenth of the steps tell, and of the last line at least.
class LateMean {
 public:
  explicit LateMean(int64_t steps) : from_(steps - steps / 10) {}
  void add(int64_t step, double value) {
    last_ = value;
    if (step <= from_) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / count_ : last_; }

 private:
  int64_t from_;
  double sum_ = 0, count_ = 0, last_ = 0;
};

}  // namespace

std::string CompletedRun::data() const {
  const auto found = identity.find("data");
  return found == identity.end() ? "" : found->second;
}

CompletedRun read_completed_run(const std::string& folder, ForeignModels foreign) {
  if (!is_run(folder))
    throw DataError(fmt::format("{}: is no run: it has no {}", folder, RunDirectory::kConfig));
  CompletedRun run;
  run.folder = folder;
  std::vector<std::string> notes;
  run.config =
      load_run_config(folder, {}, notes, foreign == ForeignModels::read ? &run.foreign : nullptr);
  const nlohmann::json summary = read_summary(folder + "/summary.json").take_or_throw().json;
  if (summary.value("status", "") != "completed")
    throw DataError(fmt::format("{}/summary.json: the run is not completed: {}", folder,
                                summary.value("status", "its end is not told")));
  run.steps = summary.value("steps", int64_t{0});
  const Result<CheckpointFolder> checkpoint = open_checkpoint_folder(folder + "/checkpoints/last");
  if (checkpoint.ok()) run.identity = read_run_record(checkpoint.value()).take_or_throw().identity;
  return run;
}

std::vector<RunFigure> figures_of_run(const CompletedRun& run, const QualityMetrics& metrics) {
  std::vector<RunFigure> figures(metrics.size());
  std::vector<LateMean> means(metrics.size(), LateMean(run.steps));
  std::vector<bool> found(metrics.size());
  JsonLineReader lines = JsonLineReader::open(run.folder + "/metrics.jsonl").take_or_throw();
  while (lines.next().take_or_throw()) {
    const int64_t step = lines.record().value("step", int64_t{0});
    for (size_t i = 0; i < metrics.size(); ++i) {
      const std::optional<double> value = quality_of_line(metrics[i], lines.record());
      if (!value) continue;
      found[i] = true;
      figures[i].value = *value;
      means[i].add(step, *value);
    }
  }
  if (!lines.problems().empty()) throw DataError(lines.problems().front());
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (!found[i])
      figures[i].missing =
          fmt::format("{} does not record {}{}", run.folder, metrics[i].key(),
                      metrics[i].is_of_training ? "" : ": it needs validation data");
    else if (metrics[i].is_of_training)
      figures[i].value = means[i].value();
    if (figures[i].missing.empty() && !std::isfinite(figures[i].value))
      figures[i].missing = fmt::format("{}: {} is no number", run.folder, metrics[i].key());
  }
  return figures;
}

std::string text(const SettingDifference& difference) {
  return fmt::format("{} is {}, not {}", difference.key, difference.b, difference.a);
}

std::vector<SettingDifference> setting_differences(const Config& a, const Config& b) {
  std::vector<SettingDifference> differences;
  for (const ConfigField& field : config_fields()) {
    if (field.key == "run.dir" || field.key == "run.name") continue;
    if (!field.is_for(a) && !field.is_for(b)) continue;
    std::string of_a = value_yaml(field, a), of_b = value_yaml(field, b);
    if (of_a == of_b) continue;
    const std::string_view section = field.section();
    const bool is_of_engine = section == "run" || section == "engine" || section == "log";
    differences.push_back({field.key, std::move(of_a), std::move(of_b), is_of_engine});
  }
  return differences;
}

bool names_runs(const std::string& named) {
  std::error_code error;
  return fs::is_directory(named, error) ||
         (named.find_first_of("*?[") != named.npos && !fs::exists(named, error));
}

std::vector<std::string> run_folders(const std::string& named) {
  constexpr int kDepth = 2;
  std::error_code error;
  std::vector<std::string> found;
  for (const std::string& path :
       fs::exists(named, error) ? std::vector<std::string>{named} : matches(named))
    if (fs::is_directory(path, error)) find_runs(path, kDepth, found);
  if (found.empty() && is_ablation(named))
    throw UsageError(fmt::format(
        "{} is an ablation: of its runs it keeps what was measured, and its report has judged each "
        "arm against the base by the same test; two other arms are trained for that by "
        "`{} lab gate CONFIG --with key=value`",
        named, program_name()));
  if (found.empty())
    throw UsageError(fmt::format(
        "there is no run at {}: a run's folder, a folder of them, or a pattern in quotes, such as "
        "'runs/mine-*', was expected",
        named));
  std::ranges::sort(found);
  return found;
}

}  // namespace fullbore
