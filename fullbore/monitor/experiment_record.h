#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// One setting of a controlled experiment, measured: what two of them are compared by. Numbers that are
/// not known (a sensor that is not there) are NaN, and null in JSON.
struct ExperimentRecord {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string name;
  std::string date;  ///< ISO 8601
  int64_t batch_size = 0;
  int64_t num_workers = 0;
  int64_t seq_len = 0;
  std::string precision;
  bool fused = true;
  double throughput_tok_s = kUnknown;  ///< of training steps, evaluation left out
  double time_per_step_ms = kUnknown;
  double step_ms_p10 = kUnknown;
  double step_ms_p50 = kUnknown;
  double step_ms_p90 = kUnknown;
  double memory_mb = kUnknown;  ///< largest resident set; "vram_mb" in records of other machines
  double gpu_util_pct = kUnknown;
  double final_loss = kUnknown;  ///< of the last validation; of training where there is none
  double val_loss = kUnknown;
  int64_t steps = 0;
  int64_t repeats = 1;  ///< runs of which the figures are means
  int64_t rng_key = 0;  ///< of the first
  std::string split;    ///< what the validation loss is of
  std::string hardware;
  std::string build;

  int64_t tokens_per_step() const { return batch_size * seq_len; }
};

/// Against a baseline: throughput over throughput, rounded to hundredths, and the final losses'
/// difference, negative where it is better.
struct VersusBaseline {
  double speedup = ExperimentRecord::kUnknown;
  double loss_delta = ExperimentRecord::kUnknown;
};
VersusBaseline versus_baseline(const ExperimentRecord& record, const ExperimentRecord& baseline);

/// Throughput times the time of a step must be the tokens of a step, within 2 %. Says by how much they
/// are not; none where they are, or something is not known.
std::optional<std::string> inconsistency(const ExperimentRecord& record);

/// Is a faster setting as good? Nothing is said of what is not known.
struct QualityGate {
  bool known = false;
  bool passed = false;             ///< |loss_delta| <= 0.05
  std::vector<std::string> flags;  ///< "validation loss 12 % above the baseline's"
};
QualityGate quality_gate(const ExperimentRecord& record, const ExperimentRecord& baseline);

/// Means of the figures of runs of one setting; at least one. Throughput is that of all their steps together,
/// so that it goes with the mean time of a step. Names, settings and key are the first's.
ExperimentRecord mean_of(const std::vector<ExperimentRecord>& records);

/// {name, date, config{...}, metrics{...}, vs_baseline{...}, ...}.
nlohmann::ordered_json to_json(const ExperimentRecord& record,
                               const ExperimentRecord* baseline = nullptr);
/// Failure names the file and the field that is missing or of another type. Only name, the settings of
/// config and metrics' throughput, time of a step and final loss must be there.
Result<ExperimentRecord> read_experiment_record(const std::string& path);

}  // namespace fullbore
