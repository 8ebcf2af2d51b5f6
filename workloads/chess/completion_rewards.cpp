#include "workloads/chess/completion_rewards.h"

#include <utility>

#include "fullbore/base/start_thread.h"

namespace fullbore::chess {

CompletionRewards::CompletionRewards()
    : thread_(start_thread("what scores completions", [this] { work(); })) {}

CompletionRewards::~CompletionRewards() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CompletionRewards::begin(size_t completions, std::vector<PendingTruth> truths) {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
  scores_.assign(completions, RecordScore());
  scored_ = 0;
  failed_ = nullptr;
  pending_ = std::move(truths);
  truths_.clear();
  truths_.resize(pending_.size());
}

void CompletionRewards::add(size_t place, size_t prompt, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({place, prompt, std::move(text)});
  }
  changed_.notify_all();
}

std::vector<RecordScore> CompletionRewards::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || scored_ == scores_.size(); });
  if (failed_) std::rethrow_exception(failed_);
  return std::move(scores_);
}

void CompletionRewards::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const Completion next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    RecordScore score;
    std::exception_ptr failed;
    try {
      score = this->score(next);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed)
      failed_ = failed;
    else
      scores_[next.place] = score;
    ++scored_;
    changed_.notify_all();
  }
}

RecordScore CompletionRewards::score(const Completion& completion) {
  std::optional<RecordTruth>& truth = truths_[completion.prompt];
  if (!truth) truth = pending_[completion.prompt].get().take_or_throw();
  return truth->score(completion.text);
}

}  // namespace fullbore::chess
