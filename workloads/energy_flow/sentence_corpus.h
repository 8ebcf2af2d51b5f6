#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::energy_flow {

/// A premise, and a hypothesis that follows from it (label 0), may follow (1) or contradicts it (2).
struct SentencePair {
  std::string premise;
  std::string hypothesis;
  int label = 0;
};

/// Pair `index` of the synthetic corpus `key`: the same on every machine. SplitMix64 from the state
/// key XOR (index + 1) 0xD1B54A32D192ED03 chooses adjective, noun, verb, preposition, place, label and the hypothesis's
/// adjective.
SentencePair sentence_pair(uint64_t key, uint64_t index);

/// All words of the corpus: 8 adjectives, nouns, verbs, prepositions and places, then "a", "the", "is", "no".
std::span<const std::string_view> corpus_words();

/// A sentence's embedding, f32[width], of unit length: the mean of a vector a word, drawn by SplitMix64 from the word's
/// FNV-1a hash in [-1, 1) and weighted by 1 / (1 + 0.1 j) at place j from 0. Words are what spaces part. Computed in
/// double. UsageError for a text without words.
/// Source of the hash: Fowler, Noll, Vo 1991, FNV-1a with 64 bits (draft-eastlake-fnv).
std::vector<float> sentence_embedding(std::string_view text, int64_t width = 768);

/// The same of many sentences: each word's vector is drawn once, and kept.
class SentenceEmbedder {
 public:
  explicit SentenceEmbedder(int64_t width) : width_(static_cast<size_t>(width)) {}
  std::vector<float> operator()(std::string_view text);

 private:
  const std::vector<double>& vector_of(std::string_view word);

  size_t width_;
  std::map<std::string, std::vector<double>, std::less<>> vectors_;
};

}  // namespace fullbore::energy_flow
