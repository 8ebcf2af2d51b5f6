#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "fullbore/base/result.h"

namespace fullbore {

/// A run's summary.json as it was written (run_summary.h), without its checksum. Those of older versions have none: not
/// is_checked.
struct SummaryFile {
  nlohmann::json json;
  bool is_checked = false;
};
/// Failure: it cannot be read, or is not what was written.
Result<SummaryFile> read_summary(const std::string& path);

}  // namespace fullbore
