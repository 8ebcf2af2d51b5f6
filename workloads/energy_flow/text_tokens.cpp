#include "workloads/energy_flow/text_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/data/word_tokenizer.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

constexpr std::string_view kEmptyText = "empty";

// The first of the names that there is a special token of, or -1.
int32_t find(const Tokenizer& tokenizer, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const SpecialToken& token : tokenizer.special_tokens())
      if (token.text == name) return token.id;
  return -1;
}

}  // namespace

TextForm::TextForm(std::shared_ptr<const Tokenizer> tokenizer, int64_t length,
                   const std::string& source)
    : tokenizer_(std::move(tokenizer)), length_(length) {
  const auto require = [&](std::initializer_list<std::string_view> names, const char* use) {
    const int32_t id = find(*tokenizer_, names);
    if (id < 0)
      throw UsageError(fmt::format("{}: the text bridge needs a token for {}: {} or {}", source,
                                   use, *names.begin(), *(names.end() - 1)));
    return id;
  };
  padding_ = require({"<pad>", "[PAD]"}, "padding");
  begin_ = require({"<bos>", "[CLS]"}, "the beginning");
  end_ = require({"<eos>", "[SEP]"}, "the end");
  for (const SpecialToken& token : tokenizer_->special_tokens())
    if (token.id != end_) never_.push_back(token.id);
}

Result<bool> TextForm::fill(std::string_view text, std::span<int32_t> row) const {
  Result<std::vector<int32_t>> tokens = tokenizer_->encode(text, SpecialTokens::kAsText);
  if (tokens.ok() && tokens.value().empty())
    tokens = tokenizer_->encode(kEmptyText, SpecialTokens::kAsText);
  if (!tokens.ok()) return Failure{tokens.error()};
  const std::vector<int32_t>& ids = tokens.value();
  const size_t kept = std::min(ids.size(), row.size());
  std::copy_n(ids.begin(), kept, row.begin());
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(kept), row.end(), padding_);
  return kept < ids.size();
}

std::string TextForm::text(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token == end_ || token == padding_) break;
    tokenizer_->append_bytes(token, text);
  }
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::shared_ptr<const Tokenizer> corpus_tokenizer() {
  const std::span<const std::string_view> words = corpus_words();
  return std::make_shared<const WordTokenizer>(
      WordTokenizer::create({words.begin(), words.end()}).take_or_throw());
}

std::shared_ptr<const Tokenizer> bridge_tokenizer(const std::string& path) {
  return path.empty() ? corpus_tokenizer() : load_tokenizer(path).take_or_throw();
}

}  // namespace fullbore::energy_flow
