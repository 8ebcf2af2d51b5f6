#include "workloads/peptide/numpress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr size_t kMost = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Decoder = std::optional<std::string> (*)(std::string_view, size_t, std::vector<double>&);

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::vector<double> decoded(Decoder decode, const std::string& bytes) {
  std::vector<double> values = {-1};
  EXPECT_EQ(decode(bytes, kMost, values), std::nullopt);
  EXPECT_LE(values.capacity(), kMost);
  return values;
}

std::string refusal(Decoder decode, const std::string& bytes, size_t most = kMost) {
  std::vector<double> values;
  const std::string problem = decode(bytes, most, values).value_or("");
  EXPECT_LE(values.capacity(), most);
  return problem;
}

// An encoder from the paper's description.

std::string fixed_point_bytes(double fixed_point) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += static_cast<char>(std::bit_cast<uint64_t>(fixed_point) >> shift);
  return bytes;
}

std::string little_endian(int64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

class HalfBytes {
 public:
  void put(uint32_t half) {
    if (filled_)
      bytes_.back() = static_cast<char>(bytes_.back() | static_cast<char>(half));
    else
      bytes_ += static_cast<char>(half << 4);
    filled_ = !filled_;
  }
  void put_integer(uint32_t value) {
    // Eight leading halves of ones would leave nothing to store, and have no head.
    const int zeros = std::countl_zero(value) / 4;
    const int ones = std::min(std::countl_one(value) / 4, 7);
    put(static_cast<uint32_t>(ones > 0 ? 8 + ones : zeros));
    for (int i = 0; i < 8 - std::max(ones, zeros); ++i) put((value >> (4 * i)) & 0xF);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  bool filled_ = false;
};

std::string encode_linear(const std::vector<int64_t>& x, double fixed_point) {
  std::string bytes = fixed_point_bytes(fixed_point);
  HalfBytes rest;
  for (size_t i = 0; i < x.size(); ++i)
    if (i < 2)
      bytes += little_endian(x[i], 4);
    else
      rest.put_integer(static_cast<uint32_t>(x[i] - 2 * x[i - 1] + x[i - 2]));
  return bytes + rest.bytes();
}

std::string encode_integers(const std::vector<uint32_t>& values) {
  HalfBytes halves;
  for (const uint32_t value : values) halves.put_integer(value);
  return halves.bytes();
}

TEST(Numpress, IntegersByHand) {
  EXPECT_THAT(decoded(decode_numpress_integers, ""), IsEmpty());
  // 8: all eight halves are zero. A last half byte of zero fills the byte.
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("80")), ElementsAre(0));
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("88")), ElementsAre(0, 0));
  // 71 is 1, 7f is 15, 601 is 0x10 (lowest half first), 6ff is 0xff, 3 07111 is 0x11170.
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("8717f6016ff3071110")),
              ElementsAre(0, 1, 15, 16, 255, 0x11170));
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("1fffffff")), ElementsAre(0xFFFFFFF));
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("0123456780")), ElementsAre(0x87654321U));
  // 9: one leading half of ones, seven stored; f: seven, one stored.
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("91000000")), ElementsAre(0xF0000001U));
  EXPECT_THAT(decoded(decode_numpress_integers, from_hex("f0ff")),
              ElementsAre(0xFFFFFFF0U, 0xFFFFFFFFU));
}

TEST(Numpress, LinearByHand) {
  const std::string ten = from_hex("4024000000000000");  // 10.0, big endian
  EXPECT_THAT(decoded(decode_numpress_linear, ten), IsEmpty());
  EXPECT_THAT(decoded(decode_numpress_linear, ten + from_hex("0a000000")), ElementsAre(1));
  EXPECT_THAT(decoded(decode_numpress_linear, ten + from_hex("0a00000014000000")),
              ElementsAre(1, 2));
  // 30 + 10 is 40: 7a; 60 - 50 is 10: -50 is 0xffffffce, six halves of ones: ee c.
  EXPECT_THAT(decoded(decode_numpress_linear, ten + from_hex("0a000000140000007aeec0")),
              ElementsAre(1, 2, 4, 1));
  // The first two have no sign.
  EXPECT_THAT(decoded(decode_numpress_linear, from_hex("3ff0000000000000"
                                                       "05000080f9ffffff")),
              ElementsAre(2147483653.0, 4294967289.0));
  // An empty array's fixed point is of no use, whatever it is.
  EXPECT_THAT(decoded(decode_numpress_linear, std::string(8, '\0')), IsEmpty());
}

TEST(Numpress, LogarithmsByHand) {
  const std::string hundred = fixed_point_bytes(100);
  EXPECT_THAT(decoded(decode_numpress_logarithms, hundred), IsEmpty());
  const auto values = decoded(decode_numpress_logarithms, hundred + from_hex("00006400e803"));
  EXPECT_THAT(values,
              Pointwise(::testing::DoubleEq(), {0.0, std::exp(1.0) - 1, std::exp(10.0) - 1}));
}

TEST(Numpress, ComesBackFromAnEncoder) {
  std::mt19937_64 random(7);  // NOLINT: the same numbers each time
  for (int trial = 0; trial < 200; ++trial) {
    // m/z that rise by anything from nothing to much: residuals of all sizes and signs.
    const size_t count = random() % 100;
    const double fixed_point = std::ldexp(1.0, static_cast<int>(random() % 20));
    std::vector<int64_t> x;
    std::vector<double> expected;
    std::vector<uint32_t> integers;
    std::vector<double> expected_integers;
    int64_t last = static_cast<int64_t>(random() % 100000);
    for (size_t i = 0; i < count; ++i) {
      last += static_cast<int64_t>((random() & 0x3FFFFFFF) >> (random() % 31));
      if (i < 2) last &= 0xFFFFFFFF;
      x.push_back(last);
      expected.push_back(static_cast<double>(last) / fixed_point);
      integers.push_back(static_cast<uint32_t>(random()) >> (random() % 32));
      expected_integers.push_back(integers.back());
    }
    EXPECT_EQ(decoded(decode_numpress_linear, encode_linear(x, fixed_point)), expected);
    EXPECT_EQ(decoded(decode_numpress_integers, encode_integers(integers)), expected_integers);
  }
}

TEST(Numpress, EveryTruncationIsRefusedOrShorter) {
  const std::string linear = encode_linear({100, 250, 300, 9000, 9001, 1 << 30}, 10);
  const size_t all = decoded(decode_numpress_linear, linear).size();
  for (size_t size = 0; size < linear.size(); ++size) {
    std::vector<double> values;
    const auto problem = decode_numpress_linear(linear.substr(0, size), kMost, values);
    if (size < 8) {
      EXPECT_THAT(problem.value_or(""), HasSubstr("expected a fixed point of 8"));
    }
    EXPECT_LT(values.size(), all);
  }
  const auto ends = [&](size_t size) {
    return refusal(decode_numpress_linear, linear.substr(0, size));
  };
  EXPECT_EQ(ends(0), "has 0 bytes of MS-Numpress, expected a fixed point of 8");
  EXPECT_EQ(ends(11), "its MS-Numpress data end within number 1");
  EXPECT_EQ(ends(15), "its MS-Numpress data end within number 2");
  EXPECT_EQ(ends(17), "its MS-Numpress data end within number 3");
  EXPECT_EQ(refusal(decode_numpress_integers, from_hex("8112")),
            "its MS-Numpress data end within number 2");
  EXPECT_EQ(refusal(decode_numpress_integers, from_hex("00")),
            "its MS-Numpress data end within number 1");
  EXPECT_EQ(refusal(decode_numpress_logarithms, fixed_point_bytes(9999) + "abc"),
            "its MS-Numpress data end within number 2");
  EXPECT_EQ(refusal(decode_numpress_logarithms, "abc"),
            "has 3 bytes of MS-Numpress, expected a fixed point of 8");
}

TEST(Numpress, RefusesFixedPointsThatAreNone) {
  for (const double wrong : {0.0, -1.0, kInfinity, -kInfinity, std::nan("")}) {
    const std::string bytes = fixed_point_bytes(wrong) + std::string(8, '\1');
    for (const Decoder decode : {decode_numpress_linear, decode_numpress_logarithms})
      EXPECT_THAT(refusal(decode, bytes), HasSubstr("expected a positive number"));
  }
  EXPECT_EQ(refusal(decode_numpress_linear, fixed_point_bytes(0) + "four"),
            "its fixed point is 0, expected a positive number");
}

TEST(Numpress, RefusesWhatOverflows) {
  // exp(65535 / 90) is more than a double holds; a subnormal fixed point makes even 1 too large.
  EXPECT_EQ(refusal(decode_numpress_logarithms, fixed_point_bytes(90) + from_hex("0000ffff")),
            "number 2 overflows");
  EXPECT_EQ(refusal(decode_numpress_linear, fixed_point_bytes(5e-324) + from_hex("01000000")),
            "number 1 overflows");
  // Residuals of 2^31 - 1 grow with the square of their number: 2^53 at the 2,898th number.
  HalfBytes residuals;
  for (int i = 0; i < 5000; ++i) residuals.put_integer(0x7FFFFFFF);
  EXPECT_EQ(refusal(decode_numpress_linear,
                    fixed_point_bytes(1) + std::string(8, '\0') + residuals.bytes(), 10000),
            "number 2898 overflows");
}

TEST(Numpress, IsLimited) {
  const std::string zeros(50000, '\x88');
  EXPECT_EQ(refusal(decode_numpress_integers, zeros, 10), "has more than 10 numbers");
  EXPECT_EQ(refusal(decode_numpress_integers, "", 0), "");
  EXPECT_EQ(
      refusal(decode_numpress_linear, fixed_point_bytes(1) + std::string(8, '\0') + zeros, 10),
      "has more than 10 numbers");
  EXPECT_EQ(refusal(decode_numpress_linear, fixed_point_bytes(1) + std::string(8, '\0'), 1),
            "has more than 1 numbers");
  EXPECT_EQ(refusal(decode_numpress_logarithms, fixed_point_bytes(1) + std::string(22, '\0'), 10),
            "has more than 10 numbers");
  EXPECT_EQ(refusal(decode_numpress_logarithms, fixed_point_bytes(1) + std::string(20, '\0'), 10),
            "");
}

}  // namespace
}  // namespace fullbore::peptide
