// SipHash-2-4 of 128 bits against the vectors of its authors: key 00 01 .. 0f, messages 00 01 .. of each length.
#include "fullbore/base/siphash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace fullbore {
namespace {

std::string hex(const SipTag& tag) {
  std::string text;
  for (const uint8_t byte : tag) text += fmt::format("{:02x}", byte);
  return text;
}

SipKey counting_key() {
  SipKey key{};
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  return key;
}

std::string counting_message(size_t bytes) {
  std::string message;
  for (size_t i = 0; i < bytes; ++i) message.push_back(static_cast<char>(i));
  return message;
}

// vectors_sip128 of https://github.com/veorq/SipHash/blob/master/vectors.h
TEST(SipHash, GivesTheVectorsOfItsAuthors) {
  const std::pair<size_t, const char*> vectors[] = {
      {0, "a3817f04ba25a8e66df67214c7550293"},  {1, "da87c1d86b99af44347659119b22fc45"},
      {2, "8177228da4a45dc7fca38bdef60affe4"},  {7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
      {8, "3b62a9ba6258f5610f83e264f31497b4"},  {9, "264499060ad9baabc47f8b02bb6d71ed"},
      {15, "5493e99933b0a8117e08ec0f97cfc3d9"}, {16, "6ee2a4ca67b054bbfd3315bf85230577"},
      {31, "2939b0183223fafc1723de4f52c43d35"}, {32, "7c3956ca5eeafc3e363e9d556546eb68"},
      {63, "5150d1772f50834a503e069a973fbd7c"},
  };
  for (const auto& [bytes, tag] : vectors)
    EXPECT_EQ(hex(sip_hash(counting_key(), counting_message(bytes))), tag) << bytes << " bytes";
}

TEST(SipHash, TakesItsMessageInAnyPieces) {
  const std::string message = counting_message(41);
  const SipTag whole = sip_hash(counting_key(), message);
  for (size_t first = 0; first <= message.size(); ++first)
    for (size_t second = first; second <= message.size(); ++second) {
      SipHash hash(counting_key());
      const std::string_view view = message;
      hash.add(view.substr(0, first));
      hash.add(view.substr(first, second - first));
      hash.add(view.substr(second));
      ASSERT_EQ(hash.finish(), whole) << first << ", " << second;
    }
}

TEST(SipHash, DependsOnEveryBitOfTheKey) {
  const SipTag tag = sip_hash(counting_key(), "message");
  for (size_t bit = 0; bit < 128; ++bit) {
    SipKey other = counting_key();
    other[bit / 8] = static_cast<uint8_t>(other[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_NE(sip_hash(other, "message"), tag) << bit;
  }
}

}  // namespace
}  // namespace fullbore
