#include "workloads/energy_flow/sentence_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::Contains;

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The workload's specification, check A13: numbers of another program.
TEST(SentenceCorpus, HasThePairsOfTheSpecification) {
  SplitMix64 draws(0);
  EXPECT_EQ(draws.bits(), 0xe220a8397b1dcdafU);
  EXPECT_EQ(draws.bits(), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(draws.bits(), 0x06c45d188009454fU);
  const SentencePair first = sentence_pair(42, 0), second = sentence_pair(42, 1);
  EXPECT_EQ(first.premise, "a quiet woman sits under the river");
  EXPECT_EQ(first.hypothesis, "a woman sits");
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(second.premise, "a red cat sings above the river");
  EXPECT_EQ(second.hypothesis, "no cat sings above the river");
  EXPECT_EQ(second.label, 2);
  EXPECT_EQ(sentence_pair(42, 3).hypothesis, "the man is busy");
  EXPECT_EQ(sentence_pair(42, 3).label, 1);
}

TEST(SentenceCorpus, HasTheEmbeddingsOfTheSpecification) {
  const std::vector<float> premise = sentence_embedding(sentence_pair(42, 0).premise);
  ASSERT_EQ(premise.size(), 768U);
  EXPECT_NEAR(premise[0], 0.038706767, 4e-9);
  EXPECT_NEAR(premise[1], -0.017298082, 4e-9);
  EXPECT_NEAR(premise[2], 0.090063894, 4e-9);
  EXPECT_NEAR(premise[3], -0.022586765, 4e-9);
  EXPECT_NEAR(dot(premise, sentence_embedding(sentence_pair(42, 0).hypothesis)), 0.734082515, 1e-7);
  EXPECT_NEAR(dot(premise, sentence_embedding(sentence_pair(42, 1).premise)), 0.406515096, 1e-7);
  EXPECT_NEAR(dot(premise, premise), 1, 1e-6);
}

TEST(SentenceCorpus, SaysEachOfItsWords) {
  std::set<std::string, std::less<>> said;
  int labels[3] = {};
  for (uint64_t i = 0; i < 2000; ++i) {
    const SentencePair pair = sentence_pair(7, i);
    ++labels[pair.label];
    for (std::string_view rest :
         {std::string_view(pair.premise), std::string_view(pair.hypothesis)})
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(' '), rest.size());
        said.emplace(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
  }
  EXPECT_EQ(corpus_words().size(), 44U);
  EXPECT_EQ(said.size(), 44U);
  for (const std::string_view word : corpus_words()) EXPECT_THAT(said, Contains(word));
  for (const int count : labels) EXPECT_NEAR(count, 2000.0 / 3, 100);
}

// Bits, at a width that no vector of instructions divides: what a sentence is embedded to does not depend on those before it.
TEST(SentenceCorpus, EmbedsManySentencesAsEachAlone) {
  SentenceEmbedder embedding_of(37);
  for (uint64_t i = 0; i < 100; ++i) {
    const SentencePair pair = sentence_pair(5, i);
    EXPECT_EQ(embedding_of(pair.premise), sentence_embedding(pair.premise, 37)) << pair.premise;
    EXPECT_EQ(embedding_of(pair.hypothesis), sentence_embedding(pair.hypothesis, 37));
  }
}

TEST(SentenceCorpus, EmbedsByPlaceAndWord) {
  EXPECT_LT(dot(sentence_embedding("a dog"), sentence_embedding("dog a")), 0.9999);
  EXPECT_EQ(sentence_embedding("dog", 4), sentence_embedding("  dog ", 4));
  EXPECT_EQ(sentence_embedding("dog", 4).size(), 4U);
  EXPECT_THROW(sentence_embedding(" "), UsageError);
}

}  // namespace
}  // namespace fullbore::energy_flow
