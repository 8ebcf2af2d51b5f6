#include "workloads/long_context/reference_readers.h"

#include <algorithm>
#include <vector>

#include "fullbore/base/check.h"

namespace fullbore::long_context {
namespace {

struct Statement {
  std::string_view name;
  std::string_view value;
};

/// Lines "NAME: VALUE." of the text.
std::vector<Statement> statements(std::string_view text) {
  std::vector<Statement> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const size_t colon = line.find(": ");
    if (colon != std::string_view::npos && line.ends_with('.') &&
        line.find(' ') == colon + 1)  // one word before it
      found.push_back({line.substr(0, colon), line.substr(colon + 2, line.size() - colon - 3)});
    begin = end + 1;
  }
  return found;
}

void add(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

}  // namespace

std::string needle_answer(std::string_view text) {
  const size_t line = text.rfind('\n');
  if (line == std::string_view::npos) return {};
  const std::string_view question = text.substr(line + 1);
  const std::vector<Statement> known = statements(text.substr(0, line));
  std::string answer;
  if (const size_t mark = question.find("? "); mark != std::string_view::npos) {
    std::vector<std::string_view> values = {question.substr(0, mark)};
    for (size_t i = 0; i < values.size(); ++i)
      for (const Statement& each : known)
        if (each.value == values[i] && std::ranges::find(values, each.name) == values.end()) {
          values.push_back(each.name);
          add(answer, each.name);
        }
    return answer;
  }
  const size_t colon = question.find(": ");
  if (colon == std::string_view::npos) return {};
  for (std::string_view names = question.substr(0, colon); !names.empty();) {
    const size_t end = std::min(names.find(", "), names.size());
    for (const Statement& each : known)
      if (each.name == names.substr(0, end)) add(answer, each.value);
    names.remove_prefix(std::min(end + 2, names.size()));
  }
  return answer;
}

NeedleOracle::NeedleOracle(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), logits_(static_cast<size_t>(tokenizer.vocabulary_size()), 0) {}

void NeedleOracle::begin(int64_t) { text_.clear(); }

void NeedleOracle::read(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) tokenizer_.append_bytes(token, text_);
}

std::span<const float> NeedleOracle::logits() {
  const size_t line = text_.rfind('\n') + 1;  // 0 where there is none
  const size_t mark = std::min(text_.find(": ", line), text_.find("? ", line));
  const std::string answer = needle_answer(text_);
  const size_t written = mark == std::string::npos ? answer.size() : text_.size() - (mark + 2);
  const char next = written < answer.size() ? answer[written] : '.';
  std::vector<int32_t> token;
  tokenizer_.append_tokens(std::string_view(&next, 1), token);
  FB_CHECK(token.size() == 1, "{} tokens for a character", token.size());
  std::ranges::fill(logits_, 0.0F);
  logits_[static_cast<size_t>(token.front())] = 1;
  return logits_;
}

LetterGuesser::LetterGuesser(const Tokenizer& tokenizer, uint64_t seed)
    : draws_(seed), logits_(static_cast<size_t>(tokenizer.vocabulary_size()), 0) {
  tokenizer.append_tokens("ABCDEFGHIJKLMNOPQRSTUVWXYZ", letters_);
}

std::span<const float> LetterGuesser::logits() {
  std::ranges::fill(logits_, 0.0F);
  logits_[static_cast<size_t>(letters_[draws_.below(letters_.size())])] = 1;
  return logits_;
}

}  // namespace fullbore::long_context
