#include "fullbore/base/seal.h"

#include <gtest/gtest.h>

#include <vector>

namespace fullbore {
namespace {

const std::string kLine = R"({"a":1,"b":"}"})";
const std::string kLines = "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}\n";
const std::string kYaml = "train:\n  steps: 24\n  batch_size: 4\n";

TEST(Seal, OfAnObjectIsItsLastMember) {
  EXPECT_EQ(seal_json("{\"a\":1}"), "{\"a\":1,\"xxhash64\":\"ca0b885a32fc8b48\"}");
  for (const std::string& text : {kLine, kLines, std::string("{}")}) {
    const SealedJson opened = open_sealed_json(seal_json(text, 7), 7);
    EXPECT_EQ(opened.seal, Seal::kWhole);
    EXPECT_EQ(opened.text, text);
    EXPECT_EQ(open_sealed_json(seal_json(text, 7), 8).seal, Seal::kBroken) << "of another place";
    EXPECT_EQ(open_sealed_json(text).seal, Seal::kNone);
    EXPECT_EQ(open_sealed_json(text).text, text);
  }
}

/// Every text that one change makes: a byte flipped, dropped or added, an end cut off, a line dropped or repeated.
std::vector<std::string> damaged(const std::string& text) {
  std::vector<std::string> all;
  for (size_t i = 0; i < text.size(); ++i) {
    all.push_back(text);
    all.back()[i] ^= 4;
    all.push_back(std::string(text).erase(i, 1));
    all.push_back(std::string(text).insert(i, "x"));
    all.push_back(text.substr(0, i));
    if (i > 0 && text[i - 1] != '\n') continue;
    const size_t end = text.find('\n', i);
    if (end == std::string::npos) continue;
    all.push_back(std::string(text).erase(i, end + 1 - i));
    all.push_back(std::string(text).insert(i, text.substr(i, end + 1 - i)));
  }
  return all;
}

TEST(Seal, NoDamagedObjectIsWhole) {
  for (const std::string& text : {kLine, kLines})
    for (const std::string& other : damaged(seal_json(text)))
      EXPECT_NE(open_sealed_json(other).seal, Seal::kWhole) << other;
}

TEST(Seal, OfYamlIsBrokenByEveryDamage) {
  const std::string sealed = seal_yaml(kYaml);
  EXPECT_EQ(yaml_seal(sealed), Seal::kWhole);
  EXPECT_EQ(yaml_seal(kYaml), Seal::kNone);
  for (const std::string& other : damaged(sealed)) {
    if (other.find(':') == std::string::npos) continue;  // cut off in the first line
    EXPECT_EQ(yaml_seal(other), Seal::kBroken) << other;
  }
}

}  // namespace
}  // namespace fullbore
