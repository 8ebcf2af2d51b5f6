#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/lab/diagnosis/advice.h"
#include "fullbore/lab/diagnosis/run_facts.h"

namespace fullbore {

/// What a kind of model adds to the diagnosis of a finished run.
struct DiagnosisAddition {
  std::string title;                                         ///< "samples"
  std::vector<std::pair<std::string, double>> figures = {};  ///< by name, for JSON
  std::vector<std::string> lines = {};                       ///< for people, of 80 columns at most
  std::vector<Advice> advice = {};
};
struct DiagnosisAdder {
  std::string name;
  std::function<bool(const Config&)> is_for;
  /// Throws as a command does; what it throws becomes a note of the diagnosis, which goes on.
  std::function<DiagnosisAddition(const std::string& run)> add;
};
void register_diagnosis_adder(DiagnosisAdder adder);
const std::vector<DiagnosisAdder>& diagnosis_adders();

/// All that `fullbore diagnose` says.
struct Diagnosis {
  std::string subject;   ///< the configuration or the run
  std::string job;       ///< for people: model, batch, precision, threads
  std::string measured;  ///< for people: "30 steps, an evaluation of 8 batches and a save"
  bool is_run = false;   ///< a finished run; else `facts.whole` is a projection
  RunFacts facts;
  double launches_per_step = RunFacts::kUnknown;
  int64_t unrecorded_launches = 0;
  double utilisation = RunFacts::kUnknown;
  std::vector<std::string> notes = {};
  std::vector<DiagnosisAddition> additions = {};
};

/// All advice: rules and additions, the largest gain first.
std::vector<Advice> all_advice(const Diagnosis& diagnosis);

nlohmann::ordered_json to_json(const Diagnosis& diagnosis);
/// In lines of at most 80 columns; settings are not broken.
std::string text(const Diagnosis& diagnosis);

}  // namespace fullbore
