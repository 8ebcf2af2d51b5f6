#include "fullbore/data/answer_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 60)) {
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

}  // namespace

int32_t beginning_token(BosPolicy policy, const Tokenizer& tokenizer, bool has_anchor) {
  if (policy == BosPolicy::kNo || (policy == BosPolicy::kAuto && has_anchor)) return -1;
  if (tokenizer.beginning_of_text() < 0 && policy == BosPolicy::kYes)
    throw UsageError(
        "the tokenizer has no token that begins a text; the policy no or auto was expected");
  return tokenizer.beginning_of_text();
}

Result<std::vector<int32_t>> answer_tokens(const Tokenizer& tokenizer,
                                           std::span<const ChatPiece> anchor,
                                           std::string_view answer, int32_t terminator) {
  const Result<std::vector<int32_t>> before = tokens_of(tokenizer, anchor);
  if (!before.ok()) return Failure{"the anchor: " + before.error()};
  std::vector<ChatPiece> joint(anchor.begin(), anchor.end());
  joint.push_back({std::string(answer)});
  Result<std::vector<int32_t>> both = tokens_of(tokenizer, joint);
  if (!both.ok()) return Failure{"the answer: " + both.error()};
  std::vector<int32_t> ids = std::move(both).value();
  const std::vector<int32_t>& prefix = before.value();
  const auto [mine, changed] = std::ranges::mismatch(prefix, ids);
  if (mine != prefix.end()) {
    std::string token;
    tokenizer.append_bytes(*mine, token);
    std::string instead;
    if (changed != ids.end()) tokenizer.append_bytes(*changed, instead);
    return Failure{fmt::format(
        "the anchor '{}' merges with the answer '{}': its token {} of {}, '{}', becomes '{}'; an "
        "anchor that ends where a token ends was expected, such as one without a space at its end",
        shown(text_of(anchor)), shown(answer), mine - prefix.begin() + 1, prefix.size(),
        shown(token), shown(instead))};
  }
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
  if (terminator >= 0) ids.push_back(terminator);
  return ids;
}

}  // namespace fullbore
