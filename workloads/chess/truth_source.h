#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "workloads/chess/engine_pool.h"
#include "workloads/chess/record_score.h"

namespace fullbore::chess {

class TruthSource;

/// A truth that may still be on its way.
class PendingTruth {
 public:
  /// Waits for the engine, at most as long as its options say for all attempts. Where it gave up, the rules alone are the
  /// truth, and the source counts it. Failure: as RecordTruth::create(). Once.
  Result<RecordTruth> get();

 private:
  friend class TruthSource;
  TruthSource* source_ = nullptr;
  ChessRecord record_;
  std::optional<std::shared_future<EngineAnalysis>> analysis_;
};

/// The truths of prompts as they are drawn: an engine analyses while answers are generated, once for all answers to a
/// prompt.
class TruthSource {
 public:
  /// `engines`: every P record is analysed by them, whatever moves it has of its own; null: its own moves are the truth.
  /// `eval_limit`: evaluations are cut to it, in pawns, as those that answers are trained to write.
  explicit TruthSource(const RewardOptions& options, EnginePool* engines = nullptr,
                       double eval_limit = std::numeric_limits<double>::infinity())
      : options_(options), engines_(engines), eval_limit_(eval_limit) {}

  /// Returns at once. The source must outlive what it returns. Any thread.
  PendingTruth begin(const ChessRecord& record);
  /// P records whose truth was the rules alone, for no engine ranked their moves.
  int64_t unranked() const { return unranked_; }
  /// Why the first of them was not ranked; "" where its record had no moves of its own. Any thread.
  std::string problem() const;

 private:
  friend class PendingTruth;
  RewardOptions options_;
  EnginePool* engines_;
  double eval_limit_;
  std::atomic<int64_t> unranked_ = 0;
  mutable std::mutex mutex_;
  std::string problem_;
};

}  // namespace fullbore::chess
