#pragma once
#include <map>
#include <string>
#include <vector>

#include "fullbore/ckpt/run_record.h"
#include "fullbore/lab/quality/quality_metric.h"
#include "fullbore/train/config.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {

/// A run that is complete, as comparisons know it: by what it left in its folder. Nothing is locked or changed.
struct CompletedRun {
  std::string folder;
  Config config;      ///< that it was made with
  int64_t steps = 0;  ///< made since step 0
  /// Settings of a model that this program has not, as YAML, by their keys.
  std::map<std::string, std::string> foreign = {};
  RunIdentity
      identity;  ///< of its last checkpoint: "data" tells which, with a hash; empty where it kept none

  int64_t seed() const { return config.run.seed; }
  /// What it learned from, "" where that is not known.
  std::string data() const;
};

/// DataError: no run is there, it is not complete, or what it left is damaged. UsageError: it is of another program's
/// model (train/foreign_model.h), and `foreign` does not say that it is read all the same.
CompletedRun read_completed_run(const std::string& folder,
                                ForeignModels foreign = ForeignModels::refused);

/// A metric's figure of a run, or why there is none.
struct RunFigure {
  double value = 0;
  std::string missing;  ///< empty: there is one
};

/// In the order of the metrics: of its last evaluation, or the mean of the lines about the last tenth of its steps where a
/// metric is of training. DataError: metrics.jsonl is missing or damaged.
std::vector<RunFigure> figures_of_run(const CompletedRun& run, const QualityMetrics& metrics);

/// A setting that two configurations have otherwise.
struct SettingDifference {
  std::string key;
  std::string a, b;  ///< as YAML
  /// It decides how a run is made, told and kept (run, engine, log), not what is learned from what.
  bool is_of_engine = false;
};
/// "engine.precision is bf16, not fp32".
std::string text(const SettingDifference& difference);

/// In the order of config_fields(), but for run.dir, run.name and what only other models have.
std::vector<SettingDifference> setting_differences(const Config& a, const Config& b);

/// The runs that `named` means: a run's folder, a folder of such folders (at most two deep), or a pattern of either with
/// *, ? or []. By path. UsageError: none is there.
std::vector<std::string> run_folders(const std::string& named);
/// Is it something that run_folders() would look for, and no file?
bool names_runs(const std::string& named);

}  // namespace fullbore
