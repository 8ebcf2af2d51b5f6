#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// A run's settings before and after memory was fitted (memory_fit.h).
struct SettledConfig {
  Config given;
  Config resolved;                      ///< what the run is made with
  std::vector<std::string> notes = {};  ///< what was damaged, for people
};

/// Out of a run directory; none if the run was stopped before it kept any. Of what is damaged the last checkpoint has
/// a copy, before memory was fitted and after being the same then. DataError: there is no checkpoint either.
std::optional<SettledConfig> read_settled(const std::string& run);

/// A configuration to go on with.
struct ResumedConfig {
  Config config;  ///< still to be fitted: the machine may have less memory now
  Config given;   ///< the same without what memory had changed: SettledConfig::given from now on
  std::vector<std::string> decisions;  ///< what was taken from the run, for people
};

/// What was decided for a run (batch, parts, microbatches, recomputation) is not decided anew when it is resumed,
/// for another batch is another run: where `config` leaves a setting open, or says what was given before,
/// the run's own value is taken. What the user has changed since stays as `config` has it, and parts that
/// do not divide its batch are left to memory again. UsageError where the run's batch does not go with
/// what has been changed.
ResumedConfig keep_settled(const Config& config, const SettledConfig& run);

/// Has memory changed any of them? Microbatches are none of its decisions.
bool differs_in_settled(const Config& a, const Config& b);

}  // namespace fullbore
