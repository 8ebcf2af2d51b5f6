#include "workloads/chess/chess_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fullbore::chess {

ChessTokens::ChessTokens(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), end_(tokenizer_->end_of_document()) {
  if (end_ < 0) end_ = static_cast<int32_t>(tokenizer_->vocabulary_size());
}

int64_t ChessTokens::vocabulary() const {
  return std::max<int64_t>(tokenizer_->vocabulary_size(), end_ + 1);
}

Result<std::vector<int32_t>> ChessTokens::prompt(const ChessRecord& record) const {
  return tokenizer_->encode(record.prompt, SpecialTokens::kAsText);
}

Result<RecordTokens> ChessTokens::tokens(const ChessRecord& record) const {
  Result<std::vector<int32_t>> prompt_ids = prompt(record);
  if (!prompt_ids.ok()) return Failure{prompt_ids.error()};
  Result<std::vector<int32_t>> whole = tokenizer_->encode(record.text(), SpecialTokens::kAsText);
  if (!whole.ok()) return Failure{whole.error()};
  RecordTokens made{std::move(prompt_ids.value()), {}};
  const std::vector<int32_t>& all = whole.value();
  if (all.size() < made.prompt.size() ||
      !std::equal(made.prompt.begin(), made.prompt.end(), all.begin()))
    return Failure{fmt::format("a token of \"{}\" stands across the end of its prompt",
                               record.text().substr(0, 200))};
  made.completion.assign(all.begin() + static_cast<std::ptrdiff_t>(made.prompt.size()), all.end());
  made.completion.push_back(end_);
  return made;
}

std::string ChessTokens::text(std::span<const int32_t> tokens) const {
  std::string bytes;
  for (const int32_t token : tokens) {
    if (token == end_) break;
    if (token >= 0 && token < tokenizer_->vocabulary_size()) tokenizer_->append_bytes(token, bytes);
  }
  return bytes;
}

}  // namespace fullbore::chess
