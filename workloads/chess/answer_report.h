#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/app/mean_intervals.h"
#include "workloads/chess/answer_measures.h"

namespace fullbore::chess {

/// One figure of a report.
struct AnswerRow {
  const char* name;
  const char* key;
  MeanInterval value;       ///< low and high are the value where there is no interval
  bool is_share = true;     ///< told in per cent
  std::string beside = {};  ///< the baseline it is to be compared with; "" without one
};

/// The figures of section 4 of the specification of one task. Means have intervals of 95 %, by bootstrap over answers.
struct TaskReport {
  int64_t answers = 0;
  std::vector<AnswerRow> rows;
};
struct AnswerReport {
  TaskReport policy;
  TaskReport arbiter;
  PolicyBaselines constant;
  CopyBaseline copy;
  RewardScheme scheme = RewardScheme::weighted;
};

/// `records`: those that the answers are to; baselines are of each once.
AnswerReport answer_report(std::span<const ChessRecord> records,
                           std::span<const ScoredAnswer> answers, const RewardOptions& options);
/// Tasks without an answer are left out.
std::string answer_table(const AnswerReport& report);
nlohmann::ordered_json answer_json(const AnswerReport& report);

/// What a copied position and one move for all positions reach, as lines and as JSON.
std::string baseline_table(const PolicyBaselines& constant, const CopyBaseline& copy);
nlohmann::ordered_json baseline_json(const PolicyBaselines& constant, const CopyBaseline& copy);

/// One answer's fields: {"task": "P", "reward": ..., "format": ..., "best": ..., ...}.
nlohmann::ordered_json score_json(const RecordScore& score);

}  // namespace fullbore::chess
