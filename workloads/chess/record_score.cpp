#include "workloads/chess/record_score.h"

#include <fmt/format.h>

#include "fullbore/base/excerpt.h"

namespace fullbore::chess {

Result<RecordTruth> RecordTruth::create(const ChessRecord& record, const RewardOptions& options) {
  RecordTruth truth;
  truth.task_ = record.task;
  truth.options_ = options;
  if (record.task == ChessTask::policy) {
    Result<PolicyTruth> policy = policy_truth(record.fen, record.top);
    if (!policy.ok()) return Failure{policy.error()};
    truth.policy_ = std::move(policy).value();
    truth.forced_ = record.prompt.ends_with("M:");
    return truth;
  }
  ParsedArbiterAnswer answer = parse_arbiter_answer(record.completion);
  if (!answer.format_valid)
    return Failure{
        fmt::format("the answer '{}' is not FEN+reward+0|1+0|1", excerpt(record.completion))};
  truth.arbiter_ = std::move(answer.answer);
  if (truth.arbiter_.truncated) truth.arbiter_.reward = options.illegal_reward;
  return truth;
}

RecordScore RecordTruth::score(std::string_view completion) const {
  RecordScore score;
  score.task = task_;
  if (task_ == ChessTask::policy)
    score.policy = score_policy(forced_ ? "M:" : "", completion, policy_, options_);
  else
    score.arbiter = score_arbiter(completion, arbiter_, options_);
  return score;
}

}  // namespace fullbore::chess
