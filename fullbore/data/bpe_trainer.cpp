#include "fullbore/data/bpe_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "fullbore/base/threads.h"
#include "fullbore/data/byte_characters.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/document_stream.h"
#include "fullbore/data/pre_tokenizer.h"

namespace fullbore {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using WordCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

void count_word(WordCounts& counts, std::string_view word, int64_t times) {
  const auto entry = counts.find(word);
  if (entry != counts.end())
    entry->second += times;
  else
    counts.emplace(word, times);
}

/// Cuts documents where a BPE may.
class WordCutter : public ByteTokenizer {
 public:
  size_t last_cut(std::string_view text) const override { return last_word_boundary(text); }
};

void count_words(const TextPart& part, WordCounts& counts) {
  size_t begin = 0;
  std::vector<size_t> ends = part.document_ends;
  ends.push_back(part.text.size());
  for (const size_t end : ends) {
    const char* at = part.text.data() + begin;
    const char* const stop = part.text.data() + end;
    while (at < stop) {
      const char* const next = word_end(at, stop);
      count_word(counts, {at, static_cast<size_t>(next - at)}, 1);
      at = next;
    }
    begin = end;
  }
}

Result<WordCounts> count_words(const TextSources& sources, const BpeTrainingOptions& options) {
  const WordCutter cutter;
  DocumentStream stream(sources, cutter);
  ThreadPool pool(options.workers);
  const auto slots = static_cast<size_t>(2 * options.workers);
  std::vector<TextPart> parts(slots);
  std::vector<WordCounts> counts(slots);
  uint64_t bytes = 0;
  for (bool more = true; more;) {
    size_t count = 0;
    while (more && count < slots) {
      const Result<bool> next = stream.next(parts[count]);
      if (!next.ok()) return Failure{next.error()};
      more = next.value();
      if (more) bytes += parts[count++].source_bytes;
    }
    pool.parallel_for(static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        count_words(parts[i], counts[i]);
    });
    if (options.progress && !options.progress(bytes, sources.bytes())) return Failure{"stopped"};
  }
  for (size_t slot = 1; slot < slots; ++slot)
    for (const auto& [word, times] : counts[slot]) count_word(counts[0], word, times);
  return std::move(counts[0]);
}

using Pair = std::pair<int32_t, int32_t>;
uint64_t key_of(Pair pair) {
  return uint64_t{static_cast<uint32_t>(pair.first)} << 32 | static_cast<uint32_t>(pair.second);
}

/// A pair and how often it occurred when it was put on the heap.
struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

/// The words as tokens, in which pair after pair is merged.
class Merging {
 public:
  Merging(const WordCounts& words, std::span<const int32_t> byte_tokens) {
    for (const auto& [word, times] : words) {
      Word added{tokens_.size(), word.size(), times};
      for (const char byte : word) tokens_.push_back(byte_tokens[static_cast<unsigned char>(byte)]);
      for (size_t i = 0; i + 1 < word.size(); ++i)
        change({tokens_[added.begin + i], tokens_[added.begin + i + 1]}, times, words_.size());
      words_.push_back(added);
    }
    push_changed();
  }

  /// The most frequent pair; false if none is left.
  bool best(Pair& pair) {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const auto entry = pairs_.find(key_of(top.pair));
      const int64_t count = entry == pairs_.end() ? 0 : entry->second.count;
      if (count == top.count) {
        pair = top.pair;
        return true;
      }
      if (count > 0) heap_.push({count, top.pair});
    }
    return false;
  }

  void merge(Pair pair, int32_t merged) {
    std::vector<uint32_t> places = std::move(pairs_[key_of(pair)].words);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const uint32_t word : places) merge_in(word, pair, merged);
    pairs_.erase(key_of(pair));
    push_changed();
  }

 private:
  struct Word {
    size_t begin;  // in tokens_
    size_t size;
    int64_t times;
  };
  struct Occurrence {
    int64_t count = 0;
    std::vector<uint32_t> words;  // where it is or has been
    bool changed = false;
  };

  void change(Pair pair, int64_t by, size_t word) {
    Occurrence& occurrence = pairs_[key_of(pair)];
    occurrence.count += by;
    if (by < 0) return;  // its candidate's count is seen to be stale
    if (occurrence.words.empty() || occurrence.words.back() != word)
      occurrence.words.push_back(static_cast<uint32_t>(word));
    if (!occurrence.changed) changed_.push_back(pair);
    occurrence.changed = true;
  }

  void push_changed() {
    for (const Pair& pair : changed_) {
      const auto entry = pairs_.find(key_of(pair));
      if (entry == pairs_.end()) continue;
      entry->second.changed = false;
      if (entry->second.count > 0) heap_.push({entry->second.count, pair});
    }
    changed_.clear();
  }

  void merge_in(uint32_t index, Pair pair, int32_t merged) {
    Word& word = words_[index];
    int32_t* const tokens = tokens_.data() + word.begin;
    size_t size = 0;  // of what is written so far
    for (size_t i = 0; i < word.size; ++i) {
      tokens[size++] = tokens[i];
      if (i + 1 == word.size || tokens[i] != pair.first || tokens[i + 1] != pair.second) continue;
      tokens[size - 1] = merged;
      ++i;
      if (size > 1) {
        change({tokens[size - 2], pair.first}, -word.times, index);
        change({tokens[size - 2], merged}, word.times, index);
      }
      if (i + 1 < word.size) {
        change({pair.second, tokens[i + 1]}, -word.times, index);
        change({merged, tokens[i + 1]}, word.times, index);
      }
    }
    word.size = size;
  }

  std::vector<int32_t> tokens_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, Occurrence> pairs_;
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

Result<std::shared_ptr<const BpeTokenizer>> train_bpe(const TextSources& sources,
                                                      const BpeTrainingOptions& options) {
  const size_t special = options.special_tokens.size();
  if (options.vocabulary_size < static_cast<int64_t>(256 + special) ||
      options.vocabulary_size > INT32_MAX)
    return Failure{
        fmt::format("a vocabulary of {} tokens; at least {} are needed, one for each "
                    "byte and special token",
                    options.vocabulary_size, 256 + special)};
  const size_t most = static_cast<size_t>(options.vocabulary_size) - special;
  const Result<WordCounts> words = count_words(sources, options);
  if (!words.ok()) return Failure{words.error()};

  BpeVocabulary vocabulary;
  std::array<int32_t, 256> byte_tokens{};
  std::unordered_map<std::string, int32_t> ids;
  for (const char byte : bytes_in_character_order()) {
    byte_tokens[static_cast<unsigned char>(byte)] = static_cast<int32_t>(ids.size());
    ids.emplace(std::string(1, byte), static_cast<int32_t>(ids.size()));
    vocabulary.tokens.emplace_back(1, byte);
  }
  Merging merging(words.value(), byte_tokens);
  std::unordered_set<uint64_t> merged;
  Pair pair;
  while (vocabulary.tokens.size() < most && merging.best(pair)) {
    const std::string token = vocabulary.tokens[static_cast<size_t>(pair.first)] +
                              vocabulary.tokens[static_cast<size_t>(pair.second)];
    // Two ways may lead to one token: it keeps its id.
    const auto [entry, is_new] = ids.emplace(token, static_cast<int32_t>(vocabulary.tokens.size()));
    if (is_new) vocabulary.tokens.push_back(token);
    // A pair may come back by the other way to one of its tokens: its place in the list stays.
    if (merged.insert(key_of(pair)).second)
      vocabulary.merges.push_back({pair.first, pair.second, entry->second});
    merging.merge(pair, entry->second);
  }
  for (const std::string& text : options.special_tokens) {
    vocabulary.special_tokens.push_back({text, static_cast<int32_t>(vocabulary.tokens.size())});
    vocabulary.tokens.push_back(text);
  }
  return BpeTokenizer::create(std::move(vocabulary));
}

}  // namespace fullbore
