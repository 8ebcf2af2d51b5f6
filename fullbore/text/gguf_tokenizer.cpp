#include "fullbore/text/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fullbore/base/excerpt.h"
#include "fullbore/data/bpe_parts.h"
#include "fullbore/data/byte_characters.h"

namespace fullbore {
namespace {

// Kinds of tokens in tokenizer.ggml.token_type.
constexpr int64_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;

struct Split {
  const char* name;
  BpeSettings settings;
};
const Split kSplits[] = {{"gpt-2", {WordSplit::kGpt2, false, false, -1}},
                         {"llama-bpe", {WordSplit::kLlama3, false, true, -1}},
                         {"qwen2", {WordSplit::kQwen2, true, false, -1}},
                         {"smollm", {WordSplit::kSmolLm, false, false, -1}}};

template <class List>
const List* list_at(const GgufFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? nullptr : std::get_if<List>(&found->second);
}

/// What the format has in one key and 32 bits, signed or not.
std::vector<int64_t> kinds_of(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (const auto* const signed_ones = list_at<std::vector<int64_t>>(file, kKey))
    return *signed_ones;
  if (const auto* const others = list_at<std::vector<uint64_t>>(file, kKey))
    return {others->begin(), others->end()};
  return {};
}

bool is_true(const GgufFile& file, std::string_view key) {
  const auto* const value = list_at<bool>(file, key);
  return value != nullptr && *value;
}

Result<std::shared_ptr<const Tokenizer>> read(const GgufFile& file) {
  const Result<std::string> model = file.text("tokenizer.ggml.model");
  if (!model.ok()) return Failure{model.error()};
  const auto refuse = [&](const std::string& reason) {
    return Failure{fmt::format("{}: not a tokenizer: {}", file.path(), reason)};
  };
  if (model.value() != "gpt2")
    return refuse(
        fmt::format("'tokenizer.ggml.model' is '{}'; gpt2, a byte-level BPE, was expected",
                    excerpt(model.value())));
  const Result<std::string> pre = file.text("tokenizer.ggml.pre");
  if (!pre.ok()) return Failure{pre.error()};
  const auto split = std::ranges::find(kSplits, pre.value(), &Split::name);
  if (split == std::end(kSplits))
    return refuse(
        fmt::format("'tokenizer.ggml.pre' is '{}'; gpt-2, llama-bpe, qwen2 or smollm was "
                    "expected",
                    excerpt(pre.value())));
  const auto* const tokens = list_at<std::vector<std::string>>(file, "tokenizer.ggml.tokens");
  const auto* const merges = list_at<std::vector<std::string>>(file, "tokenizer.ggml.merges");
  const std::vector<int64_t> kinds = kinds_of(file);
  if (tokens == nullptr || merges == nullptr || kinds.size() != tokens->size())
    return refuse(
        "'tokenizer.ggml.tokens', '.merges' and '.token_type' of as many tokens were expected");
  BpeParts parts;
  parts.settings = split->settings;
  for (size_t id = 0; id < tokens->size(); ++id) {
    const std::string& token = (*tokens)[id];
    const bool is_control = kinds[id] == kControl;
    if (is_control || kinds[id] == kUserDefined)
      parts.added.push_back(
          {.text = token, .id = static_cast<int32_t>(id), .is_control = is_control});
    else
      parts.vocabulary.emplace_back(token, static_cast<int64_t>(id));
  }
  for (const std::string& merge : *merges) {
    const size_t space = merge.find(' ');
    if (space == std::string::npos)
      return refuse(fmt::format("the merge '{}'; two tokens were expected", excerpt(merge)));
    parts.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  const Result<uint64_t> beginning = file.whole("tokenizer.ggml.bos_token_id");
  if (is_true(file, "tokenizer.ggml.add_bos_token") && beginning.ok() &&
      beginning.value() < tokens->size())
    parts.beginning = (*tokens)[beginning.value()];
  Result<std::shared_ptr<const BpeTokenizer>> result = assemble_bpe(parts);
  if (!result.ok()) return refuse(result.error());
  return std::shared_ptr<const Tokenizer>(std::move(result).value());
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> gguf_tokenizer(const GgufFile& file) { return read(file); }

void add_gguf_tokenizer(const Tokenizer& tokenizer, int64_t rows, GgufMetadata& metadata) {
  const auto put = [&](const char* key, GgufValue value) {
    metadata[fmt::format("tokenizer.ggml.{}", key)] = std::move(value);
  };
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  if (bpe == nullptr) return put("model", std::string("none"));
  const BpeVocabulary& vocabulary = bpe->vocabulary();
  put("model", std::string("gpt2"));
  for (const Split& split : kSplits)
    if (split.settings.split == vocabulary.settings.split) put("pre", std::string(split.name));
  std::map<int32_t, const SpecialToken*> special;
  for (const SpecialToken& token : vocabulary.special_tokens) special[token.id] = &token;
  std::vector<std::string> tokens;
  std::vector<int64_t> kinds;
  for (int64_t id = 0; id < std::max(rows, bpe->vocabulary_size()); ++id) {
    const auto found = special.find(static_cast<int32_t>(id));
    if (id >= bpe->vocabulary_size()) {
      tokens.push_back(fmt::format("[PAD{}]", id));
      kinds.push_back(kUnused);
    } else if (found != special.end()) {
      tokens.push_back(found->second->text);
      kinds.push_back(found->second->is_control ? kControl : kUserDefined);
    } else {
      tokens.push_back(to_byte_characters(vocabulary.tokens[static_cast<size_t>(id)]));
      kinds.push_back(kNormal);
    }
  }
  std::vector<std::string> merges;
  const auto shown = [&](int32_t id) {
    return to_byte_characters(vocabulary.tokens[static_cast<size_t>(id)]);
  };
  for (const BpeMerge& merge : vocabulary.merges)
    merges.push_back(shown(merge.left) + " " + shown(merge.right));
  put("tokens", std::move(tokens));
  put("token_type", std::move(kinds));
  put("merges", std::move(merges));
  const int32_t beginning = vocabulary.settings.beginning;
  put("add_bos_token", beginning >= 0);
  if (beginning >= 0) put("bos_token_id", static_cast<uint64_t>(beginning));
  if (const int32_t end = bpe->end_of_document(); end >= 0)
    put("eos_token_id", static_cast<uint64_t>(end));
}

}  // namespace fullbore
