#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/device/kernel.h"
#include "fullbore/monitor/phase_clock.h"
#include "fullbore/monitor/step_histogram.h"

namespace fullbore {

/// A part of the way from the start of the command to the end of the first step.
struct StartPart {
  std::string name;
  double seconds = 0;
};

/// What made the steps of a run: the last that went on with it.
struct RunMaker {
  std::string build;                           ///< base/build_id.h
  std::string device;                          ///< "cpu"
  std::string hardware;                        ///< as the device names it
  std::string processor;                       ///< the level whose instructions were used: "avx512"
  int workers = 0;                             ///< 0: not known
  std::vector<KernelFallback> fallbacks = {};  ///< nodes that ran without a kernel of their own
};

/// What is left of a run when it ends, as summary.json. NaN is written as null: not known.
struct RunSummary {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string status;  ///< "completed", "interrupted" (run again with --resume) or "failed"
  std::string error;   ///< why, of a failed run
  int64_t steps = 0;   ///< made since step 0, before a resume too
  double final_train_loss = kUnknown;
  double final_validation_loss = kUnknown;
  double best_validation_loss = kUnknown;
  int64_t best_step = -1;
  double tokens_per_second =
      kUnknown;  ///< of what is counted in tokens: since the last start or resume, evaluation left out
  double samples_per_second = kUnknown;  ///< likewise, where samples have a unit
  int64_t measured_steps = 0;            ///< that those rates are of
  double measured_seconds = kUnknown;    ///< of those steps, waiting included
  double measured_tokens = kUnknown;     ///< that those steps learned from, as counted
  double utilisation = kUnknown;         ///< of the measured peak of the machine, likewise
  double data_wait_share = kUnknown;     ///< of the steps' time
  int64_t peak_bytes = 0;                ///< largest resident set of the process
  int64_t planned_peak_bytes = 0;        ///< State, batches, results and arenas of all programs
  int64_t parameters = 0;
  double flops_per_step = kUnknown;         ///< of the largest shape of batch, loops to their ends
  double seconds_to_first_step = kUnknown;  ///< from the start of the command
  std::vector<StartPart> start;             ///< its parts, in order
  double wall_seconds = kUnknown;           ///< since the last start or resume
  PhaseSeconds phases;                      ///< what those went to; together as many
  StepHistogram step_times;                 ///< of single steps since step 0, waiting included
  int64_t skipped_steps = 0;                ///< not finite; since step 0
  int64_t saves = 0;                        ///< checkpoints written since then
  double save_stall_seconds = 0;            ///< for which they held the loop up, all together
  RunMaker maker = {};
  int64_t metric_lines = -1;  ///< of metrics.jsonl, by which a cut is told; -1: not known
  int64_t log_bytes = -1;     ///< of log.txt that log_checksum is of; -1: not known
  std::string log_checksum;   ///< checksum_of_start()
};

nlohmann::ordered_json to_json(const RunSummary& summary);
/// Of a summary as it was read; those that are not as they were written are left out.
std::vector<KernelFallback> fallbacks_of(const nlohmann::json& summary);
/// With a checksum of its own, base/seal.h.
Status write_summary(const std::string& path, const RunSummary& summary);

/// Of the first `bytes` of a file: xxHash64 of pieces of 64 KiB, each with the hash before it as its seed. Failure: it
/// cannot be read, or is shorter.
Result<std::string> checksum_of_start(const std::string& path, int64_t bytes);

}  // namespace fullbore
