#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fullbore/train/batch_maker.h"
#include "fullbore/train/rollout.h"
#include "workloads/chess/batch_clock.h"
#include "workloads/chess/chess_data.h"
#include "workloads/chess/completion_rewards.h"
#include "workloads/chess/completion_rows.h"
#include "workloads/chess/move_ranker.h"
#include "workloads/chess/policy_step.h"
#include "workloads/chess/step_completions.h"

namespace fullbore::chess {

/// How the model is asked: what of it generates, and what scores.
struct PolicyModel {
  PagedDecodeFunction decode;
  PolicyHidden hidden;
};

/// Batches of grpo steps: prompts by the seed and the step, completions by the policy as it is, rewards by rules and truth,
/// advantages by group. Of State it has caches, the reference's parameters, and the penalty's controller.
class PolicyBatches : public BatchMaker {
 public:
  PolicyBatches(const Config& config, std::shared_ptr<const ChessData> data, PolicyModel model);

  const std::vector<BatchField>& fields() const override { return shapes_.back(); }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  std::vector<StateEntry> state_entries() const override;
  void begin(State& state) const override;
  void prepare(State& state, const CompileOptions& options, std::shared_ptr<Arena> arena) override;
  Batch make(uint64_t position) override;
  void step_made(uint64_t position, const StepResults& results) override;
  bool resumes_at(uint64_t position) const override;
  StepResults figures() const override;
  std::vector<std::string> take_notices() override;
  std::vector<std::string> last_words() const override;
  std::vector<const Plan*> plans() const override;

 private:
  /// Prompts of a step, and their completions, group after group.
  struct Groups {
    std::vector<uint32_t> records;
    std::vector<StepCompletion> completions;
  };
  /// Memory of one field.
  struct Field {
    struct alignas(64) Line {
      std::byte bytes[64];
    };
    std::vector<Line> lines;
    template <class T>
    T* as() {
      return reinterpret_cast<T*>(lines.data());
    }
  };

  Graph scoring_graph(size_t shape, bool reference) const;
  uint32_t record_at(uint64_t index) const;
  std::vector<PendingTruth> begin_truths(const std::vector<uint32_t>& records);
  Groups complete(uint64_t round, uint64_t first, size_t prompts);
  void reward(Groups& groups, uint64_t round) const;
  void add_varied(Groups& groups, uint64_t round);
  void write_fields(const Groups& groups);
  template <class T>
  std::span<T> field(PolicyField name);
  void score(bool reference, PolicyField into);
  double penalty() const;
  void measure(const Groups& groups);

  ChessKeys keys_;
  RolloutSizes sizes_;
  uint64_t seed_;
  PolicyOptions options_;
  std::shared_ptr<const ChessData> data_;
  PolicyModel model_;
  PolicyLayout layout_;
  std::vector<std::vector<BatchField>> shapes_;
  RewardOptions reward_options_;
  std::unique_ptr<MoveRanker> search_;   ///< of reward.truth; null: no search
  std::unique_ptr<EnginePool> engines_;  ///< likewise
  TruthSource truths_;
  State* state_ = nullptr;
  std::optional<Rollout> rollout_;
  std::vector<Program>
      scoring_;  ///< of the policy, by shape; where old log-probabilities are computed anew
  std::vector<Program> reference_;  ///< by shape
  CompletionRewards rewards_;
  size_t shape_ = 0;
  std::vector<Field> buffers_;
  std::vector<const void*> pointers_;
  StepResults figures_;
  BatchClock clock_;
  int64_t generated_tokens_ = 0;
  bool told_unranked_ = false;
};

}  // namespace fullbore::chess
