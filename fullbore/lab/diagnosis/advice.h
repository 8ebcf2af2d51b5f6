#pragma once
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fullbore/lab/diagnosis/run_facts.h"

namespace fullbore {

/// What was found of a run, and what to do about it.
struct Advice {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::string rule = {};     ///< "input-bound"
  std::string finding = {};  ///< a sentence
  std::string change = {};   ///< a setting, "data.workers=2", or a sentence where no key would do
  /// The part of the whole run's time that it saves at most; not a number: it is not about time, or nobody can tell.
  double gain = kUnknown;
  std::string undo = {};  ///< the setting that was; "" where `change` is none
};

/// A rule tells at most one finding of each thing that it is about. Each is a function of facts and nothing else.
struct AdviceRule {
  const char* name;
  const char* about;  ///< when it fires, for the guide
  void (*apply)(const RunFacts& facts, std::vector<Advice>& advice);
};
/// Of where the time goes.
std::span<const AdviceRule> speed_rules();
/// Of how it was compiled.
std::span<const AdviceRule> compile_rules();
/// Of how the model learns.
std::span<const AdviceRule> learning_rules();

/// What all rules say, the largest gain first and what has none last.
std::vector<Advice> advise(const RunFacts& facts);

/// What holds the run back most, in a sentence: of the whole run's rows the longest.
std::string bottleneck(const RunFacts& facts);

}  // namespace fullbore
