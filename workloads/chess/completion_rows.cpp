#include "workloads/chess/completion_rows.h"

#include "fullbore/base/check.h"

namespace fullbore::chess {

CompletionRow::CompletionRow(std::span<const int32_t> prompt)
    : prompt_(prompt.size()), tokens_(prompt.begin(), prompt.end()), branches_(prompt_, 0) {
  FB_CHECK(prompt_ > 0, "a completion follows a token");
  for (size_t i = 0; i < prompt_; ++i) positions_.push_back(static_cast<int32_t>(i));
}

void CompletionRow::add(std::span<const int32_t> completion, bool counts) {
  FB_CHECK(!completion.empty(), "a completion has an end at least");
  std::vector<int32_t>& before = before_.emplace_back();
  if (!counts) return;
  before.push_back(static_cast<int32_t>(prompt_ - 1));
  for (size_t i = 0; i + 1 < completion.size(); ++i) {
    before.push_back(static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(completion[i]);
    branches_.push_back(static_cast<int32_t>(before_.size()));
    positions_.push_back(static_cast<int32_t>(prompt_ + i));
  }
}

}  // namespace fullbore::chess
