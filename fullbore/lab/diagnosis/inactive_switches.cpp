#include "fullbore/lab/diagnosis/inactive_switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fullbore/device/automatic_device.h"

namespace fullbore {
namespace {

/// Did the pass run, and change nothing? False where it is not known.
bool changed_nothing(const std::vector<PassRecord>& records, std::string_view pass) {
  const auto record = std::ranges::find(records, pass, &PassRecord::name);
  return record != records.end() && !record->changed;
}

void add_precision(const Config& config, const SwitchFacts& facts,
                   std::vector<InactiveSwitch>& found) {
  const std::string& precision = config.engine.precision;
  if (resolved_device(config.engine.device) != "cpu") return;
  if (precision == "bf16" && !facts.native_bf16)
    found.push_back({"engine.precision=bf16",
                     "saves memory and no time: this processor has no bf16 dot products",
                     "engine.precision=fp32"});
  if (precision == "fp16")
    found.push_back({"engine.precision=fp16",
                     "saves memory and no time: matmuls widen their operands to fp32",
                     facts.native_bf16 ? "engine.precision=bf16" : "engine.precision=fp32"});
}

void add_recompute(const Config& config, const SwitchFacts& facts,
                   std::vector<InactiveSwitch>& found) {
  const std::string& recompute = config.engine.recompute;
  if (recompute == "off" || !changed_nothing(facts.passes, "rematerialize")) return;
  found.push_back({"engine.recompute=" + recompute,
                   recompute == "auto" ? "recomputes nothing: the plan keeps to its budget without"
                                       : "recomputes nothing: no value of this step is worth it",
                   "engine.recompute=off"});
}

void add_disabled_passes(const Config& config, const SwitchFacts& facts,
                         std::vector<InactiveSwitch>& found) {
  for (const std::string& pass : config.engine.disabled_passes) {
    if (!changed_nothing(facts.all_passes, pass)) continue;
    std::vector<std::string> others = config.engine.disabled_passes;
    std::erase(others, pass);
    found.push_back({fmt::format("engine.disabled_passes=[{}]", pass),
                     "leaves out nothing: the pass changes nothing of this step",
                     fmt::format("engine.disabled_passes=[{}]", fmt::join(others, ","))});
  }
}

}  // namespace

std::vector<InactiveSwitch> inactive_switches(const Config& config, const SwitchFacts& facts) {
  std::vector<InactiveSwitch> found;
  add_precision(config, facts, found);
  add_recompute(config, facts, found);
  add_disabled_passes(config, facts, found);
  if (facts.makes_batches && config.data.workers > 1)
    found.push_back({fmt::format("data.workers={}", config.data.workers),
                     "loads nothing ahead: batches are made with the weights of their step",
                     "data.workers=1"});
  if (!facts.has_validation && config.train.early_stopping > 0)
    found.push_back({fmt::format("train.early_stopping={}", config.train.early_stopping),
                     "never stops: nothing is held out to evaluate on", "train.early_stopping=0"});
  return found;
}

}  // namespace fullbore
