#include "fullbore/data/bpe_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/data/text_file.h"
#include "fullbore/data/token_table.h"

namespace fullbore {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr size_t kMostTokens = size_t{1} << 22;
constexpr size_t kMostTokenBytes = 1024;  // what merges make is tried at every place

std::vector<std::string> llama_tokens(std::vector<std::string> names, int first_reserved) {
  for (int i = first_reserved; names.size() < 256; ++i)
    names.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  return names;
}

/// Source: the special tokens published with each family.
struct Family {
  const char* name;
  WordSplit split;
  bool composes;
  const char* beginning;
  std::vector<std::string> special;
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"gpt-2", WordSplit::kGpt2, false, "", {"<|endoftext|>"}},
      {"llama-3", WordSplit::kLlama3, false, "<|begin_of_text|>",
       llama_tokens({"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                     "<|reserved_special_token_1|>", "<|reserved_special_token_2|>",
                     "<|reserved_special_token_3|>", "<|start_header_id|>", "<|end_header_id|>",
                     "<|reserved_special_token_4|>", "<|eot_id|>"},
                    5)},
      {"llama-3.1", WordSplit::kLlama3, false, "<|begin_of_text|>",
       llama_tokens({"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                     "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
                     "<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>",
                     "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"},
                    3)},
      {"qwen2", WordSplit::kQwen2, true, "", {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}},
  };
  return all;
}

/// The bytes of canonical base64 (RFC 4648, section 4); false for anything else.
bool from_base64(std::string_view text, std::string& bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  bytes.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = i + padding < text.size() ? kDigits.find(text[i]) : 0;
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(bits >> shift & 0xFF));
    bits = 0;
  }
  for (size_t i = 0; i < padding; ++i) {
    if (bytes.back() != 0) return false;
    bytes.pop_back();
  }
  return true;
}

Status read_line(std::string_view line, std::vector<std::string>& tokens) {
  const size_t space = line.find(' ');
  const std::string_view number = space == line.npos ? "" : line.substr(space + 1);
  std::string bytes;
  if (space == line.npos || !from_base64(line.substr(0, space), bytes) ||
      bytes.size() > kMostTokenBytes)
    return Failure{fmt::format("'{}'; a token in base64, a space and its rank were expected",
                               line.substr(0, 60))};
  uint64_t rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (error != std::errc() || end != number.data() + number.size() || rank != tokens.size() ||
      rank >= kMostTokens)
    return Failure{fmt::format("the rank is '{}'; {}, the next one, was expected",
                               number.substr(0, 20), tokens.size())};
  tokens.push_back(std::move(bytes));
  return success();
}

/// Of each token, every pair of tokens that makes it; of one token those with the lower left rank first.
std::vector<BpeMerge> merges_of(const std::vector<std::string>& tokens) {
  const TokenTable ids(tokens);
  std::vector<BpeMerge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    const auto first = static_cast<std::ptrdiff_t>(merges.size());
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const int32_t left = ids.find(token.substr(0, cut));
      const int32_t right = left < 0 ? -1 : ids.find(token.substr(cut));
      if (right >= 0) merges.push_back({left, right, static_cast<int32_t>(id)});
    }
    std::ranges::sort(merges.begin() + first, merges.end(), {}, &BpeMerge::left);
  }
  return merges;
}

}  // namespace

std::vector<std::string> rank_file_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

Result<std::shared_ptr<const BpeTokenizer>> parse_rank_file(std::string_view text,
                                                            std::string_view family,
                                                            const std::string& source) {
  const auto known = std::ranges::find(families(), family, &Family::name);
  if (known == families().end())
    throw UsageError(fmt::format("'{}' is no family of rank files; {} are known.{}", family,
                                 fmt::join(rank_file_families(), ", "),
                                 did_you_mean(family, rank_file_families())));
  BpeVocabulary vocabulary;
  size_t line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (const Status s = read_line(line, vocabulary.tokens); !s.ok())
      return Failure{fmt::format("{}:{}: not a tokenizer: {}", source, line_number, s.error())};
  }
  vocabulary.merges = merges_of(vocabulary.tokens);
  vocabulary.settings = {known->split, known->composes, /*ignore_merges=*/true, -1};
  for (const std::string& special : known->special) {
    const auto id = static_cast<int32_t>(vocabulary.tokens.size());
    if (special == known->beginning) vocabulary.settings.beginning = id;
    vocabulary.tokens.push_back(special);
    vocabulary.special_tokens.push_back({special, id});
  }
  Result<std::shared_ptr<const BpeTokenizer>> result = BpeTokenizer::create(std::move(vocabulary));
  if (!result.ok()) return Failure{fmt::format("{}: not a tokenizer: {}", source, result.error())};
  return result;
}

Result<std::shared_ptr<const Tokenizer>> load_rank_file(const std::string& path,
                                                        std::string_view family) {
  const Result<std::string> text = read_text(path, kMostBytes);
  if (!text.ok()) return Failure{text.error()};
  Result<std::shared_ptr<const BpeTokenizer>> result = parse_rank_file(text.value(), family, path);
  if (!result.ok()) return Failure{result.error()};
  return std::shared_ptr<const Tokenizer>(std::move(result).value());
}

}  // namespace fullbore
