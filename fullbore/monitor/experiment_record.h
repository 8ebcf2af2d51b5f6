#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/sensor_summary.h"

namespace fullbore {

/// One setting of a controlled experiment, measured: what two of them are compared by. Numbers that are
/// not known (a sensor that is not there) are NaN, and null in JSON.
struct ExperimentRecord {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string name;
  std::string date;  ///< ISO 8601
  int64_t batch_size = 0;
  int64_t num_workers = 0;
  int64_t seq_len = 0;    ///< of models of texts; 0: rates are of samples
  bool full_rows = true;  ///< every batch has batch_size rows of seq_len tokens
  std::string precision;
  bool fused = true;
  double throughput_tok_s = kUnknown;      ///< of training steps, evaluation left out
  double throughput_samples_s = kUnknown;  ///< likewise, where samples have a unit
  double time_per_step_ms = kUnknown;      ///< mean, by the clock, waiting for batches included
  double step_ms_p10 = kUnknown;           ///< of single steps, as the two below
  double step_ms_p50 = kUnknown;
  double step_ms_p90 = kUnknown;
  double memory_mb = kUnknown;  ///< largest resident set; "vram_mb" in records of other machines
  // Of the sensors that the run had (sensor_summary.h), over all of it.
  double gpu_util_pct = kUnknown;
  double vram_mb = kUnknown;             ///< largest, of all devices together
  double power_w = kUnknown;             ///< mean
  double energy_j_per_token = kUnknown;  ///< at the throughput in tokens
  double temp_c = kUnknown;              ///< highest
  double clock_mhz = kUnknown;           ///< mean
  double throttled = kUnknown;           ///< 0: nothing was slowed down; above: in some run it was
  double final_loss = kUnknown;          ///< of the last training step
  double val_loss = kUnknown;            ///< of the last validation
  int64_t steps = 0;
  int64_t repeats = 1;  ///< runs of which the figures are means
  int64_t rng_key = 0;  ///< of the first
  std::string split;    ///< what the validation loss is of
  std::string model;    ///< model.name; empty in records of older versions
  std::string data;     ///< what was learned from, with a hash; empty: not known
  std::map<std::string, std::string>
      settings;  ///< by key, as YAML; empty in records of older versions
  std::string hardware;
  std::string build;

  int64_t tokens_per_step() const { return batch_size * seq_len; }
};

/// Fills in what sensors tell; the throughput must be there.
void take_sensors(const SensorSummary& sensors, ExperimentRecord& record);

/// What keeps two records from being compared, or is to be told when they are.
struct RecordDifferences {
  std::vector<std::string>
      told;  ///< settings of engine, run and log: comparing such switches is the point
  std::vector<std::string>
      refused;  ///< other settings, data, steps: the losses are of another experiment
};
/// "engine.precision is bf16, not fp32". Of records of older versions only sizes, steps and precision are known.
RecordDifferences record_differences(const ExperimentRecord& record,
                                     const ExperimentRecord& baseline);

/// Against a baseline: throughput over throughput, rounded to hundredths, and differences of losses, negative where it
/// is better.
struct VersusBaseline {
  double speedup = ExperimentRecord::kUnknown;
  double loss_delta = ExperimentRecord::kUnknown;  ///< of training
  double val_loss_delta = ExperimentRecord::kUnknown;
};
VersusBaseline versus_baseline(const ExperimentRecord& record, const ExperimentRecord& baseline);

/// Throughput, as the trainer counted, times the time of a step, by the clock, must be what a step has by the
/// settings: batch times sequence, or the rows of a batch; within 2 %. Says by how much it is not; none where it is, or
/// something is not known.
std::optional<std::string> inconsistency(const ExperimentRecord& record);
bool can_be_inconsistent(const ExperimentRecord& record);  ///< all that it takes is known

/// Is a faster setting as good? Of the validation losses where both have one, else of those of training. Nothing is said
/// of what is not known, and no better loss fails.
struct QualityGate {
  bool known = false;
  bool passed = false;             ///< the loss is above the baseline's by 0.05 at most
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
