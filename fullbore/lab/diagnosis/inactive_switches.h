#pragma once
#include <string>
#include <vector>

#include "fullbore/passes/pass.h"
#include "fullbore/train/config.h"

namespace fullbore {

/// A setting that asks for something that does not happen.
struct InactiveSwitch {
  std::string setting;  ///< "engine.recompute=auto"
  std::string
      why;  ///< a sentence without its subject: "recomputed nothing: the plan fits without it"
  std::string without;  ///< the setting that says what happens: "engine.recompute=off"
};

/// What decides whether the engine's switches are at work.
struct SwitchFacts {
  bool native_bf16 = false;             ///< contractions of bf16 are faster than of fp32 here
  std::vector<PassRecord> passes = {};  ///< of the step, as it is configured; empty: not known
  /// The same with no pass left out; asked for where engine.disabled_passes names one.
  std::vector<PassRecord> all_passes = {};
  bool makes_batches = false;  ///< by the weights of the step, so that nothing is loaded ahead
  bool has_validation = true;
};

std::vector<InactiveSwitch> inactive_switches(const Config& config, const SwitchFacts& facts);

}  // namespace fullbore
