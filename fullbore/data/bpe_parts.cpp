#include "fullbore/data/bpe_parts.h"

#include <fmt/format.h>

#include <unordered_set>

#include "fullbore/data/byte_characters.h"
#include "fullbore/data/token_table.h"

namespace fullbore {
namespace {

/// Builds the vocabulary part after part; each step may fail.
class Assembly {
 public:
  explicit Assembly(const BpeParts& parts) : parts_(parts) {}

  Status add_tokens() {
    // Ids are dense, which bounds them; whether each is there, BpeTokenizer::create() sees.
    const size_t most = parts_.vocabulary.size() + parts_.added.size();
    std::unordered_set<std::string_view> added;
    for (const SpecialToken& token : parts_.added) {
      added.insert(token.text);
      if (Status s = put(token.text, token.id, most); !s.ok()) return s;
    }
    std::string bytes;
    for (const auto& [text, id] : parts_.vocabulary) {
      if (added.count(text) > 0) {
        bytes = text;
      } else if (!from_byte_characters(text, bytes)) {
        return Failure{
            fmt::format("the token '{}' is not written in the characters of byte-level BPE", text)};
      }
      if (Status s = put(bytes, id, most); !s.ok()) return s;
    }
    ids_ = TokenTable(result_.tokens);
    return success();
  }

  Status add_merges() {
    std::string left;
    std::string right;
    for (size_t i = 0; i < parts_.merges.size(); ++i) {
      const auto& [first, second] = parts_.merges[i];
      const bool readable =
          from_byte_characters(first, left) && from_byte_characters(second, right);
      const int32_t a = ids_.find(left);
      const int32_t b = ids_.find(right);
      const int32_t both = ids_.find(left += right);
      if (!readable || a < 0 || b < 0 || both < 0)
        return Failure{fmt::format("merge {} of '{}' and '{}': {} is not in the vocabulary", i,
                                   first, second,
                                   a < 0   ? "the first"
                                   : b < 0 ? "the second"
                                           : "what they make")};
      result_.merges.push_back({a, b, both});
    }
    return success();
  }

  void find_special_tokens() {
    std::unordered_set<int32_t> made;
    for (const BpeMerge& merge : result_.merges) made.insert(merge.merged);
    for (size_t id = 0; id < result_.tokens.size(); ++id)
      if (result_.tokens[id].size() > 1 && made.count(static_cast<int32_t>(id)) == 0)
        result_.special_tokens.push_back({result_.tokens[id], static_cast<int32_t>(id)});
  }

  Status set_beginning() {
    result_.settings = parts_.settings;
    if (parts_.beginning.empty()) return success();
    for (const SpecialToken& token : result_.special_tokens)
      if (token.text == parts_.beginning) result_.settings.beginning = token.id;
    if (result_.settings.beginning < 0)
      return Failure{fmt::format(
          "the token '{}', which the post-processor puts before a text, is no special token",
          parts_.beginning)};
    return success();
  }

  BpeVocabulary take() { return std::move(result_); }
  void set_special_tokens() { result_.special_tokens = parts_.added; }

 private:
  Status put(const std::string& bytes, int64_t id, size_t most) {
    if (id < 0 || static_cast<uint64_t>(id) >= most)
      return Failure{fmt::format("the token '{}' has the id {}; ids are dense, [0, {}) at most",
                                 to_byte_characters(bytes), id, most)};
    const auto at = static_cast<size_t>(id);
    if (result_.tokens.size() <= at) result_.tokens.resize(at + 1);
    if (!result_.tokens[at].empty() && result_.tokens[at] != bytes)
      return Failure{fmt::format("the tokens '{}' and '{}' have the same id {}",
                                 to_byte_characters(result_.tokens[at]), to_byte_characters(bytes),
                                 id)};
    result_.tokens[at] = bytes;
    return success();
  }

  const BpeParts& parts_;
  BpeVocabulary result_;
  TokenTable ids_;
};

}  // namespace

Result<std::shared_ptr<const BpeTokenizer>> assemble_bpe(const BpeParts& parts) {
  Assembly assembly(parts);
  if (const Status s = assembly.add_tokens(); !s.ok()) return Failure{s.error()};
  if (const Status s = assembly.add_merges(); !s.ok()) return Failure{s.error()};
  if (parts.find_special_tokens)
    assembly.find_special_tokens();
  else
    assembly.set_special_tokens();
  if (const Status s = assembly.set_beginning(); !s.ok()) return Failure{s.error()};
  return BpeTokenizer::create(assembly.take());
}

}  // namespace fullbore
