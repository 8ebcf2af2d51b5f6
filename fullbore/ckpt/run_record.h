#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fullbore/base/result.h"
#include "fullbore/ckpt/checkpoint.h"

namespace fullbore {

/// What of a run is saved beside its tensors: with them, all that the next step depends on.
struct RunRecord {
  int64_t step = 0;            ///< steps done
  uint64_t data_position = 0;  ///< of the next batch
  uint64_t seed = 0;
  std::string config;                     ///< the resolved config, YAML
  std::string tokenizer;                  ///< JSON
  std::map<std::string, double> metrics;  ///< e.g. the best validation loss; any value, NaN too
  bool operator==(const RunRecord&) const = default;
};

/// Metadata "step", "data_position", "seed", "config", "tokenizer", "metrics" (a JSON object).
Metadata to_metadata(const RunRecord& record);
/// Failure names the file, the key, and what stands there.
Result<RunRecord> read_run_record(const Checkpoint& checkpoint);

}  // namespace fullbore
