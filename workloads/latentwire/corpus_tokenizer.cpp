#include "workloads/latentwire/corpus_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "fullbore/base/json.h"
#include "workloads/latentwire/attribute_corpus.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kCorpusMerges = 253, kCorpusDocuments = 500, kCorpusPairs = 4;

enum class Kind : uint8_t { space, letter, other };

Kind kind_of(char character) {
  const auto byte = static_cast<unsigned char>(character);
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return Kind::space;
  const unsigned char lower = byte | 0x20U;
  return lower >= 'a' && lower <= 'z' ? Kind::letter : Kind::other;
}

std::array<int32_t, 256> byte_tokens() {
  std::array<int32_t, 256> tokens{};
  std::iota(tokens.begin(), tokens.end(), CorpusTokenizer::kFirstByte);
  return tokens;
}

using Pair = std::pair<int32_t, int32_t>;
/// Words as tokens, with how often each occurs.
using Words = std::vector<std::pair<std::vector<int32_t>, int64_t>>;

Words count_words(const std::vector<std::string>& documents) {
  std::map<std::string, int64_t, std::less<>> counts;
  for (const std::string& document : documents)
    for (size_t begin = 0, end = 0; begin < document.size(); begin = end) {
      end = corpus_word_end(document, begin);
      ++counts[document.substr(begin, end - begin)];
    }
  const auto tokens = byte_tokens();
  Words words;
  for (const auto& [text, count] : counts) {
    std::vector<int32_t> word;
    for (const char byte : text) word.push_back(tokens[static_cast<unsigned char>(byte)]);
    words.emplace_back(std::move(word), count);
  }
  return words;
}

void merge_in(std::vector<int32_t>& word, Pair pair, int32_t merged) {
  size_t kept = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool found = i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second;
    word[kept++] = found ? merged : word[i];
    if (found) ++i;
  }
  word.resize(kept);
}

}  // namespace

size_t corpus_word_end(std::string_view text, size_t begin) {
  size_t at = begin;
  if (text[at] == ' ' && at + 1 < text.size() && kind_of(text[at + 1]) != Kind::space) ++at;
  const Kind kind = kind_of(text[at]);
  while (at < text.size() && kind_of(text[at]) == kind) ++at;
  return at;
}

CorpusTokenizer::CorpusTokenizer(std::vector<BpeMerge> merges)
    : merges_(std::move(merges)),
      words_(std::make_shared<const BpeMerges>(merges_, byte_tokens())),
      bytes_(kFirstByte) {
  for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
  for (const BpeMerge& merge : merges_)
    bytes_.push_back(bytes_[static_cast<size_t>(merge.left)] +
                     bytes_[static_cast<size_t>(merge.right)]);
}

size_t CorpusTokenizer::append_tokens(std::string_view text, std::vector<int32_t>& ids) const {
  BpeMerges::Scratch scratch;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = corpus_word_end(text, begin);
    words_->append_tokens(text.substr(begin, end - begin), ids, scratch);
  }
  return text.size();
}

size_t CorpusTokenizer::last_cut(std::string_view text) const {
  if (merges_.empty()) return text.size();
  // What follows may lengthen the last word, and turn a last space into the beginning of one.
  size_t last = 0;
  for (size_t begin = 0; begin < text.size(); begin = corpus_word_end(text, begin)) last = begin;
  return last;
}

std::string CorpusTokenizer::to_json() const {
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const BpeMerge& merge : merges_) pairs.push_back({merge.left, merge.right});
  return nlohmann::ordered_json{{"format", kFormat}, {"merges", std::move(pairs)}, {"version", 1}}
             .dump() +
         "\n";
}

Result<CorpusTokenizer> CorpusTokenizer::from_json(std::string_view json,
                                                   const std::string& source) {
  const auto fail = [&](const std::string& reason) {
    return Failure{fmt::format("{}: {}", source, reason)};
  };
  const Result<nlohmann::json> tree = parse_json(json);
  if (!tree.ok()) return fail(tree.error());
  const nlohmann::json& parsed = tree.value();
  if (!parsed.is_object() || parsed.value("format", nlohmann::json()) != kFormat)
    return fail(fmt::format("no tokenizer with \"format\": \"{}\"", kFormat));
  if (parsed.value("version", nlohmann::json()) != 1)
    return fail("\"version\" of the tokenizer is not 1");
  const nlohmann::json pairs = parsed.value("merges", nlohmann::json());
  if (!pairs.is_array()) return fail("\"merges\" is no list");
  std::vector<BpeMerge> merges;
  std::map<Pair, size_t> known;
  for (const nlohmann::json& pair : pairs) {
    const auto made = static_cast<int32_t>(kFirstMerge + merges.size());
    const auto is_token = [&](const nlohmann::json& id) {
      return id.is_number_integer() && id >= kFirstByte && id < made;
    };
    if (!pair.is_array() || pair.size() != 2 || !is_token(pair[0]) || !is_token(pair[1]))
      return fail(fmt::format("\"merges\" item {}: two tokens in [{}, {}) were expected",
                              merges.size(), kFirstByte, made));
    const BpeMerge merge{pair[0].get<int32_t>(), pair[1].get<int32_t>(), made};
    if (!known.emplace(Pair{merge.left, merge.right}, merges.size()).second)
      return fail(fmt::format("\"merges\" item {} stands twice", merges.size()));
    merges.push_back(merge);
  }
  return CorpusTokenizer(std::move(merges));
}

std::vector<BpeMerge> train_corpus_merges(const std::vector<std::string>& documents,
                                          int64_t count) {
  Words words = count_words(documents);
  std::vector<BpeMerge> merges;
  while (std::ssize(merges) < count) {
    std::map<Pair, int64_t> pairs;
    for (const auto& [word, times] : words)
      for (size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += times;
    if (pairs.empty()) break;
    // The first of the largest: pairs are in the order of their ids.
    const auto best =
        std::ranges::max_element(pairs, {}, [](const auto& entry) { return entry.second; });
    const auto merged = static_cast<int32_t>(CorpusTokenizer::kFirstMerge + std::ssize(merges));
    merges.push_back({best->first.first, best->first.second, merged});
    for (auto& [word, times] : words) merge_in(word, best->first, merged);
  }
  return merges;
}

CorpusTokenizer corpus_bpe() {
  std::vector<std::string> documents;
  for (uint64_t index = 0; index < kCorpusDocuments; ++index)
    documents.push_back(attribute_document(kAttributeVocabularyKey, index, kCorpusPairs));
  return CorpusTokenizer(train_corpus_merges(documents, kCorpusMerges));
}

}  // namespace fullbore::latentwire
