#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fullbore::chess {

/// A prompt and completions of it as one row of tokens: the prompt once, and behind it each completion's tokens but the
/// last, which nothing follows. What BranchedTokens and CompletionInputs have of such a row.
class CompletionRow {
 public:
  explicit CompletionRow(std::span<const int32_t> prompt);
  /// The next completion, at least one token. One that does not count takes no room.
  void add(std::span<const int32_t> completion, bool counts);

  const std::vector<int32_t>& tokens() const { return tokens_; }
  /// 0 of the prompt, i + 1 of completion i.
  const std::vector<int32_t>& branches() const { return branches_; }
  const std::vector<int32_t>& positions() const { return positions_; }
  /// Of each token of completion i, the place in the row of the one that it follows; empty if it does not count.
  const std::vector<int32_t>& before(size_t i) const { return before_[i]; }

 private:
  size_t prompt_;
  std::vector<int32_t> tokens_, branches_, positions_;
  std::vector<std::vector<int32_t>> before_;
};

}  // namespace fullbore::chess
