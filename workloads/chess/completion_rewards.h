#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "workloads/chess/record_score.h"
#include "workloads/chess/truth_source.h"

namespace fullbore::chess {

/// Scores completions on a thread of its own, while others are still generated.
class CompletionRewards {
 public:
  CompletionRewards();
  ~CompletionRewards();
  CompletionRewards(const CompletionRewards&) = delete;
  CompletionRewards& operator=(const CompletionRewards&) = delete;

  /// Of a step of so many completions, whose prompts' truths may still be on their way: analyses run while completions are
  /// made. What was begun before must have been taken.
  void begin(size_t completions, std::vector<PendingTruth> truths);
  /// Completion `place` of the step, of prompt `prompt`.
  void add(size_t place, size_t prompt, std::string text);
  /// All of them, once they are scored. Throws what made no truth: DataError.
  std::vector<RecordScore> take();

 private:
  struct Completion {
    size_t place;
    size_t prompt;
    std::string text;
  };
  void work();
  RecordScore score(const Completion& completion);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Completion> waiting_;
  std::vector<PendingTruth> pending_;               ///< of the thread, from begin() to take()
  std::vector<std::optional<RecordTruth>> truths_;  ///< likewise
  std::vector<RecordScore> scores_;
  size_t scored_ = 0;
  std::exception_ptr failed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace fullbore::chess
