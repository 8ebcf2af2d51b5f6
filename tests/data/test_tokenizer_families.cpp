// Against the Python packages tokenizers and tiktoken, by what tools/interop keeps of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/bpe_ranks.h"
#include "fullbore/data/bpe_tokenizer.h"
#include "fullbore/data/composed_text.h"
#include "fullbore/data/input_bytes.h"
#include "fullbore/data/utf8.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::string kFamilies = testing::source_folder() + "/tests/data/golden/families/";

const std::vector<std::string>& lines() {
  static const std::vector<std::string> all = [] {
    InputBytes file = InputBytes::open(kFamilies + "lines.json.gz").take_or_throw();
    std::string text(size_t{4} << 20, '\0');
    size_t size = 0;
    while (const size_t more = file.read(text.data() + size, text.size() - size).take_or_throw())
      size += more;
    return nlohmann::json::parse(text.substr(0, size)).get<std::vector<std::string>>();
  }();
  return all;
}

const nlohmann::json& golden() {
  static const nlohmann::json all =
      nlohmann::json::parse(read_file(kFamilies + "hashes.json").take_or_throw());
  return all;
}

void expect_known_ids(const Tokenizer& tokenizer, const std::string& name,
                      SpecialTokens special = SpecialTokens::kRecognised) {
  const auto few = golden()["few"][name].get<std::vector<Ids>>();
  const auto hashes = golden()[name].get<std::vector<std::string>>();
  const auto group = golden()["group"].get<size_t>();
  ASSERT_EQ(lines().size(), hashes.size() * group);
  for (size_t i = 0; i < few.size(); ++i)
    ASSERT_EQ(tokenizer.encode(lines()[i], special).take_or_throw(), few[i]) << lines()[i];
  for (size_t first = 0; first < lines().size(); first += group) {
    Ids ids;
    for (size_t i = first; i < first + group; ++i) {
      const Ids more = tokenizer.encode(lines()[i], special).take_or_throw();
      ids.insert(ids.end(), more.begin(), more.end());
    }
    ASSERT_EQ(hash_hex(hash_bytes(ids.data(), ids.size() * 4)), hashes[first / group])
        << name << ": lines from " << first << " on";
  }
}

const BpeSettings& settings_of(const Tokenizer& tokenizer) {
  return dynamic_cast<const BpeTokenizer&>(tokenizer).vocabulary().settings;
}

class TokenizerFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerFamily, HasTheIdsOfOtherPrograms) {
  const auto tokenizer = load_tokenizer(kFamilies + GetParam() + ".json").take_or_throw();
  expect_known_ids(*tokenizer, GetParam());
}

TEST_P(TokenizerFamily, HasTheWordsOfOtherPrograms) {
  const auto tokenizer = load_tokenizer(kFamilies + GetParam() + ".json").take_or_throw();
  const WordSplit split = settings_of(*tokenizer).split;
  const auto hashes = golden()[GetParam() + std::string(" words")].get<std::vector<std::string>>();
  const auto group = golden()["group"].get<size_t>();
  ASSERT_EQ(lines().size(), hashes.size() * group);
  for (size_t first = 0; first < lines().size(); first += group) {
    Ids lengths;
    for (size_t i = first; i < first + group; ++i) {
      const char* const end = lines()[i].data() + lines()[i].size();
      for (const char *at = lines()[i].data(), *next = at; at < end; at = next) {
        next = word_end(at, end, split);
        lengths.push_back(static_cast<int32_t>(next - at));
      }
    }
    ASSERT_EQ(hash_hex(hash_bytes(lengths.data(), lengths.size() * 4)), hashes[first / group])
        << "lines from " << first << " on";
  }
}

TEST_P(TokenizerFamily, IsTheSameAfterWritingAndReading) {
  const auto tokenizer = load_tokenizer(kFamilies + GetParam() + ".json").take_or_throw();
  const auto again = parse_tokenizer(tokenizer->to_json(), "again").take_or_throw();
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(settings_of(*again), settings_of(*tokenizer));
  EXPECT_EQ(again->special_tokens(), tokenizer->special_tokens());
  for (size_t i = 0; i < 500; ++i)
    ASSERT_EQ(again->encode(lines()[i]).value(), tokenizer->encode(lines()[i]).value());
}

TEST_P(TokenizerFamily, DecodesToTheTextInItsNormalForm) {
  const auto tokenizer = load_tokenizer(kFamilies + GetParam() + ".json").take_or_throw();
  std::string buffer;
  for (const std::string& line : lines()) {
    const Ids ids = tokenizer->encode(line, SpecialTokens::kAsText).take_or_throw();
    const bool composes = settings_of(*tokenizer).composes;
    ASSERT_EQ(tokenizer->decode(ids).take_or_throw(),
              composes ? composed_text(line, buffer) : std::string_view(line));
  }
}

TEST_P(TokenizerFamily, ACutWhereTheTokenizerAllowsItChangesNoToken) {
  const auto tokenizer = load_tokenizer(kFamilies + GetParam() + ".json").take_or_throw();
  int cuts = 0;
  for (size_t i = 1; i < 4000; ++i) {
    const std::string text = lines()[i - 1] + lines()[i];
    const size_t cut = tokenizer->last_cut(std::string_view(text).substr(0, lines()[i - 1].size()));
    cuts += cut > 0 ? 1 : 0;
    Ids halves;
    Ids whole;
    tokenizer->append_tokens(std::string_view(text).substr(0, cut), halves);
    tokenizer->append_tokens(std::string_view(text).substr(cut), halves);
    tokenizer->append_tokens(text, whole);
    ASSERT_EQ(halves, whole) << text << " cut at " << cut;
  }
  EXPECT_GT(cuts, 1500);
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerFamily,
                         ::testing::Values("gpt2", "llama3", "qwen2", "smollm"),
                         [](const auto& of) { return std::string(of.param); });

TEST(TokenizerFamilies, TheirSettingsAreRead) {
  const auto settings = [](const char* name) {
    return settings_of(*load_tokenizer(kFamilies + name + ".json").take_or_throw());
  };
  const auto llama = load_tokenizer(kFamilies + "llama3.json").take_or_throw();
  const int32_t begin = llama->special_token("<|begin_of_text|>");
  EXPECT_EQ(llama->beginning_of_text(), begin);
  EXPECT_GE(begin, 0);
  EXPECT_EQ(settings("llama3"), (BpeSettings{WordSplit::kLlama3, false, true, begin}));
  EXPECT_EQ(settings("qwen2"), (BpeSettings{WordSplit::kQwen2, true, false, -1}));
  EXPECT_EQ(settings("smollm"), (BpeSettings{WordSplit::kSmolLm, false, false, -1}));
  EXPECT_EQ(settings("gpt2"), BpeSettings());
}

TEST(TokenizerFamilies, GPT2sPublishedVocabulary) {
  const std::string folder = testing::shared_folder() + "/data/gpt2-tokenizer";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  expect_known_ids(*load_tokenizer(folder).take_or_throw(), "gpt2_published");
}

TEST(TokenizerFamilies, ARankFileHasTheIdsOfTiktoken) {
  const std::string text = read_file(kFamilies + "ranks.tiktoken").take_or_throw();
  const auto tokenizer = parse_rank_file(text, "llama-3.1", "ranks").take_or_throw();
  const auto ranks = std::count(text.begin(), text.end(), '\n');
  expect_known_ids(*tokenizer, "ranks", SpecialTokens::kAsText);
  EXPECT_EQ(tokenizer->vocabulary_size(), ranks + 256);
  EXPECT_EQ(tokenizer->beginning_of_text(), ranks);
  EXPECT_EQ(tokenizer->special_token("<|eot_id|>"), ranks + 9);
  EXPECT_EQ(tokenizer->special_token("<|reserved_special_token_247|>"), ranks + 255);
  const auto older = parse_rank_file(text, "llama-3", "ranks").take_or_throw();
  EXPECT_EQ(older->special_token("<|reserved_special_token_250|>"), ranks + 255);
  const auto again = parse_tokenizer(tokenizer->to_json(), "again").take_or_throw();
  expect_known_ids(*again, "ranks", SpecialTokens::kAsText);
}

TEST(TokenizerFamilies, RankFilesThatAreNoneAreRefused) {
  const auto error = [](std::string_view text) {
    return parse_rank_file(text, "llama-3", "r").error();
  };
  EXPECT_THAT(error("IQ== 0\nIg==\n"),
              HasSubstr("r:2: not a tokenizer: 'Ig=='; a token in base64"));
  EXPECT_THAT(error("IQ= 0\n"), HasSubstr("r:1: not a tokenizer: 'IQ= 0'"));
  EXPECT_THAT(error("IR== 0\n"), HasSubstr("r:1: not a tokenizer: 'IR== 0'"));
  EXPECT_THAT(error("IQ== 0\nIg== 2\n"), HasSubstr("the rank is '2'; 1, the next one, was"));
  EXPECT_THAT(error("IQ== 0\nIQ== 1\n"), HasSubstr("have the same token"));
  EXPECT_THAT(error("IQ== 0\n"), HasSubstr("the byte 0x00 has no token"));
  EXPECT_THROW(parse_rank_file("", "llama3", "r").error(), UsageError);
}

std::string composed(std::string_view text) {
  std::string buffer;
  return std::string(composed_text(text, buffer));
}

TEST(ComposedText, IsFormC) {
  EXPECT_EQ(composed("plain \u00E9 \u4E2D\u6587"), "plain \u00E9 \u4E2D\u6587");
  EXPECT_EQ(composed("e\u0301x"), "\u00E9x");
  EXPECT_EQ(composed("\u00E9\u0323"), "\u1EB9\u0301");  // the mark below comes first
  EXPECT_EQ(composed("\u0301a"), "\u0301a");
  EXPECT_EQ(composed("\u212B\u2126"), "\u00C5\u03A9");  // singletons
  EXPECT_EQ(composed("\u0958"), "\u0915\u093C");        // excluded from composition
  EXPECT_EQ(composed("\u1100\u1161\u11A8 \uAC00\u11A8"), "\uAC01 \uAC01");
  EXPECT_EQ(composed("a\u05B0\u0301\u0316b"), "\u00E1\u05B0\u0316b");
}

}  // namespace
}  // namespace fullbore
