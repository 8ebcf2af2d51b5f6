#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/lab/quality/completed_run.h"
#include "fullbore/lab/quality/equivalence.h"

namespace fullbore {

/// Runs of one setting, or of one arm of an experiment, that differ in their seeds.
struct GateSide {
  std::string name;
  std::vector<CompletedRun> runs;
  /// Seeds whose runs failed, and why: no run of the other side is a pair of theirs.
  std::vector<std::pair<int64_t, std::string>> failed = {};
};

/// What "is B no worse than A" found.
struct GateReport {
  std::string a, b;            ///< names of the sides
  std::vector<int64_t> seeds;  ///< of the pairs
  int64_t steps = 0;
  EquivalenceOptions options;
  EquivalenceReport test;
  std::vector<SettingDifference> differences;  ///< of B against A
  std::vector<std::string> notes;  ///< for people: seeds without a pair, runs that failed
};

/// Pairs the runs of equal seeds and tests every metric. A run that failed where the other side's did not has no figure
/// that would count: nothing passes then. UsageError: two runs of a side have one seed or different settings, or those of a
/// pair other steps or data, unless `despite`; then that is a note.
GateReport gate(const GateSide& a, const GateSide& b, const QualityMetrics& metrics,
                const EquivalenceOptions& options = {}, bool despite = false);

/// A table for a terminal of 80 columns, and what it means.
std::string gate_text(const GateReport& report);
nlohmann::ordered_json gate_json(const GateReport& report);

/// Of one metric, three lines.
std::string result_text(const EquivalenceResult& result);
std::string result_header(const EquivalenceOptions& options);
nlohmann::ordered_json result_json(const EquivalenceResult& result);

}  // namespace fullbore
