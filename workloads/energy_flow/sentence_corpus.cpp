#include "workloads/energy_flow/sentence_corpus.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::energy_flow {
namespace {

constexpr uint64_t kPairIncrement = 0xD1B54A32D192ED03U;
constexpr size_t kWordsOfAKind = 8;

constexpr std::array<std::string_view, 5 * kWordsOfAKind + 4> kWords = {
    "red",   "small",  "old",    "quiet",  "young",  "tall",   "happy",   "busy",    //
    "man",   "woman",  "dog",    "child",  "cat",    "driver", "player",  "artist",  //
    "walks", "sits",   "runs",   "waits",  "sleeps", "jumps",  "works",   "sings",   //
    "near",  "behind", "beside", "inside", "above",  "under",  "outside", "by",      //
    "river", "house",  "street", "park",   "market", "bridge", "school",  "field",   //
    "a",     "the",    "is",     "no"};
enum Kind : size_t { adjective, noun, verb, preposition, place };

std::string_view draw_word(SplitMix64& draws, Kind kind) {
  return kWords[kind * kWordsOfAKind + draws.bits() % kWordsOfAKind];
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

std::vector<double> word_vector(std::string_view word, size_t width) {
  SplitMix64 draws(fnv1a(word));
  std::vector<double> vector(width);
  for (double& element : vector)
    element = 2 * (static_cast<double>(draws.bits() >> 11) * 0x1p-53) - 1;
  return vector;
}

}  // namespace

std::span<const std::string_view> corpus_words() { return kWords; }

SentencePair sentence_pair(uint64_t key, uint64_t index) {
  SplitMix64 draws(key ^ (index + 1) * kPairIncrement);
  const std::string_view its_adjective = draw_word(draws, adjective);
  const std::string_view its_noun = draw_word(draws, noun);
  const std::string_view its_verb = draw_word(draws, verb);
  const std::string_view its_preposition = draw_word(draws, preposition);
  const std::string_view its_place = draw_word(draws, place);
  SentencePair pair;
  pair.label = static_cast<int>(draws.bits() % 3);
  const std::string_view other_adjective = draw_word(draws, adjective);
  pair.premise = fmt::format("a {} {} {} {} the {}", its_adjective, its_noun, its_verb,
                             its_preposition, its_place);
  switch (pair.label) {
    case 0: pair.hypothesis = fmt::format("a {} {}", its_noun, its_verb); break;
    case 1: pair.hypothesis = fmt::format("the {} is {}", its_noun, other_adjective); break;
    default:
      pair.hypothesis =
          fmt::format("no {} {} {} the {}", its_noun, its_verb, its_preposition, its_place);
  }
  return pair;
}

const std::vector<double>& SentenceEmbedder::vector_of(std::string_view word) {
  const auto known = vectors_.find(word);
  if (known != vectors_.end()) return known->second;
  return vectors_.emplace(word, word_vector(word, width_)).first->second;
}

std::vector<float> SentenceEmbedder::operator()(std::string_view text) {
  std::vector<double> sum(width_);
  int64_t words = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) {
      const double weight = 1 / (1 + 0.1 * static_cast<double>(words++));
      const std::vector<double>& vector = vector_of(rest.substr(0, end));
      for (size_t i = 0; i < width_; ++i) sum[i] += weight * vector[i];
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (words == 0) throw UsageError("a text without words has no embedding");
  double squares = 0;
  for (double& element : sum) {
    element /= static_cast<double>(words);
    squares += element * element;
  }
  const double norm = std::sqrt(squares);
  std::vector<float> embedding;
  embedding.reserve(sum.size());
  for (const double element : sum) embedding.push_back(static_cast<float>(element / norm));
  return embedding;
}

std::vector<float> sentence_embedding(std::string_view text, int64_t width) {
  return SentenceEmbedder(width)(text);
}

}  // namespace fullbore::energy_flow
