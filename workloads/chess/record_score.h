#pragma once
#include <string_view>

#include "workloads/chess/arbiter_reward.h"
#include "workloads/chess/policy_reward.h"

namespace fullbore::chess {

/// What one answer earns, of the record's task; the other part is empty.
struct RecordScore {
  ChessTask task = ChessTask::policy;
  PolicyScore policy;
  ArbiterScore arbiter;

  double reward() const { return task == ChessTask::policy ? policy.reward : arbiter.reward; }
  bool format_valid() const {
    return task == ChessTask::policy ? policy.format_valid : arbiter.format_valid;
  }
};

/// What is right of one record, made once and asked by every answer to its prompt. The truth of P is the record's `top`,
/// that of A its completion.
class RecordTruth {
 public:
  /// `options` may be of any scheme. Failure: the record's FEN, moves or answer are none.
  static Result<RecordTruth> create(const ChessRecord& record, const RewardOptions& options = {});

  /// `completion`: what a model wrote behind the prompt, without the end token; any bytes. Never throws. Any thread.
  RecordScore score(std::string_view completion) const;
  const PolicyTruth& policy() const { return policy_; }
  const ArbiterAnswer& arbiter() const { return arbiter_; }

 private:
  ChessTask task_ = ChessTask::policy;
  bool forced_ = false;  ///< the prompt ends in "M:"
  RewardOptions options_;
  PolicyTruth policy_;
  ArbiterAnswer arbiter_;
};

}  // namespace fullbore::chess
