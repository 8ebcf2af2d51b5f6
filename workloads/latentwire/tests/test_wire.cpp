#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/monitor/crc32c.h"
#include "tests/support/scratch_folder.h"
#include "workloads/latentwire/wire_codec.h"
#include "workloads/latentwire/wire_file.h"

namespace fullbore::latentwire {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// Check 10 of the specification.
TEST(WireCodec, TakesTheBytesOfTheSpecification) {
  struct Case {
    int64_t slots, width, group;
    std::vector<int64_t> bytes;  // with 16, 8, 6 and 4 bits
  };
  const Case cases[] = {
      {32, 256, 32, {16384, 8704, 6656, 4608}}, {16, 256, 32, {8192, 4352, 3328, 2304}},
      {8, 64, 32, {1024, 544, 416, 288}},       {10, 48, 32, {960, 510, 390, 270}},
      {7, 33, 32, {462, 247, 190, 132}},        {12, 320, 64, {7680, 3960, 3000, 2040}}};
  for (const Case& each : cases) {
    size_t next = 0;
    for (const int64_t bits : {16, 8, 6, 4}) {
      const WireForm form{each.slots, each.width, bits, each.group};
      EXPECT_EQ(form.bytes(), each.bytes[next]);
      const std::vector<float> z(static_cast<size_t>(form.numbers()), 0.5F);
      const WireNumbers numbers = quantize_wire(z, form).take_or_throw();
      EXPECT_EQ(std::ssize(numbers.payload) + 2 * std::ssize(numbers.scales), each.bytes[next++]);
    }
  }
}

// Check 11 of the specification.
TEST(WireCodec, QuantizesAsTheSpecificationDoes) {
  const std::vector<float> z = {.5F, -1.2F, .31F, .05F, 2, -.75F, 0, -1.99F};
  struct Case {
    int64_t bits;
    const char* payload;
    double error;
  };
  for (const Case& each : {Case{4, "9302d790", .106934}, Case{6, "4d88041f0d84", -1},
                           Case{8, "358121057fd00082", .005869}}) {
    const WireForm form{2, 4, each.bits, 4};
    const WireNumbers numbers = quantize_wire(z, form).take_or_throw();
    EXPECT_EQ(hex(numbers.payload), each.payload);
    double error = 0;
    const std::vector<float> again = dequantize_wire(numbers, form);
    for (size_t i = 0; i < z.size(); ++i)
      error = std::max(error, std::abs(static_cast<double>(z[i]) - again[i]));
    if (each.error > 0) {
      EXPECT_NEAR(error, each.error, 1e-6);
    }
    if (each.bits == 4) {
      EXPECT_EQ(f16_to_f32(numbers.scales[0]), .17138671875F);
      EXPECT_EQ(f16_to_f32(numbers.scales[1]), .28564453125F);
    }
    if (each.bits == 8) {
      EXPECT_EQ(numbers.scales, (std::vector<uint16_t>{0x20d6, 0x2408}));
    }
  }
  const WireNumbers zero = quantize_wire(std::vector<float>(4, 0.0F), {1, 4, 8, 4}).take_or_throw();
  EXPECT_EQ(f16_to_f32(zero.scales[0]), 1);
  EXPECT_EQ(hex(zero.payload), "00000000");
}

TEST(WireCodec, KeepsF16AndRefusesWhatItCannotHold) {
  const std::vector<float> z = {1.5F, -0.25F, 65504, 0};
  EXPECT_EQ(through_wire(z, {2, 2, 16, 32}).take_or_throw(), z);
  const auto error = [](std::vector<float> values, int64_t bits) {
    return through_wire(values, {2, 2, bits, 32}).error();
  };
  const float huge = 1e6F, nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error({0, 0, 0, huge}, 16), "slot 1, number 1: 1000000 is beyond f16");
  EXPECT_EQ(error({0, nan, 0, 0}, 8), "slot 0, number 1: nan is not finite");
  EXPECT_EQ(error({0, 0, huge, 0}, 4), "slot 1, number 0: 1000000 needs a scale beyond f16");
  EXPECT_EQ(check_wire_form({2, 2, 9, 32}).error(), "9 bits a number; 16 or 2 to 8 were expected");
  EXPECT_FALSE(check_wire_form({0, 2, 8, 32}).ok());
  EXPECT_FALSE(check_wire_form({2, 70000, 8, 32}).ok());
  EXPECT_FALSE(check_wire_form({65536, 65536, 8, 32}).ok());
  EXPECT_FALSE(check_wire_form({2, 2, 8, 0}).ok());
}

Wire small_wire(int64_t bits) {
  Wire wire{0x1122334455667788U, {3, 5, bits, 4}, {}};
  std::vector<float> z;
  for (int i = 0; i < 15; ++i) z.push_back(std::sin(static_cast<float>(i)));
  wire.numbers = quantize_wire(z, wire.form).take_or_throw();
  return wire;
}

TEST(WireFile, IsReadAsItWasWritten) {
  const testing::ScratchFolder folder;
  for (const int64_t bits : {16, 8, 6, 4, 3}) {
    const Wire wire = small_wire(bits);
    const std::string path = folder / "prompt.wire";
    ASSERT_TRUE(write_wire(wire, path).ok());
    const Wire again = read_wire(path).take_or_throw();
    EXPECT_EQ(again.form, wire.form);
    EXPECT_EQ(again.fingerprint, wire.fingerprint);
    EXPECT_EQ(again.z(), wire.z());
  }
}

TEST(WireFile, RefusesEveryDamagedBitAndEveryCut) {
  for (const int64_t bits : {16, 6}) {
    const std::string bytes = wire_bytes(small_wire(bits));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const Result<Wire> parsed = parse_wire(damaged, "w");
      ASSERT_FALSE(parsed.ok()) << bit;
      EXPECT_TRUE(parsed.error().starts_with("w: ")) << parsed.error();
    }
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(parse_wire(std::string_view(bytes).substr(0, size), "w").ok()) << size;
    EXPECT_FALSE(parse_wire(bytes + '\0', "w").ok());
  }
}

// Damage that whoever made the file has signed.
std::string signed_with(std::string bytes, size_t at, const std::string& replacement) {
  bytes.replace(at, replacement.size(), replacement);
  bytes.resize(bytes.size() - 4);
  const uint32_t checksum = crc32c(bytes);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(checksum >> (8 * i)));
  return bytes;
}

TEST(WireFile, NamesWhatIsWrong) {
  const std::string six = wire_bytes(small_wire(6)), sixteen = wire_bytes(small_wire(16));
  const auto error = [](const std::string& bytes) { return parse_wire(bytes, "w").error(); };
  EXPECT_EQ(error("wire"), "w: byte 0: no wire; FBLW was expected");
  EXPECT_EQ(error("FBLW"), "w: cut short: 4 bytes; a header and its checksum take 36");
  EXPECT_EQ(error(signed_with(six, 4, "\2")), "w: byte 4: version 2; 1 was expected");
  EXPECT_EQ(error(signed_with(six, 24, "\x09")),
            "w: header: 9 bits a number; 16 or 2 to 8 were expected");
  EXPECT_EQ(error(signed_with(six, 24, "\x05")),
            "w: too long: 56 bytes; 3 x 5 numbers of 5 bits take 54");
  EXPECT_EQ(error(signed_with(six, 32, std::string("\0\x80", 2))),
            "w: byte 32: a scale of -0; a positive number was expected");
  EXPECT_EQ(error(signed_with(six, six.size() - 5, "\xff")),
            "w: byte 51: bits behind the last number are not zero");
  EXPECT_EQ(error(signed_with(sixteen, 34, std::string("\0\x7c", 2))),
            "w: byte 34: a number that is not finite");
  EXPECT_TRUE(error(six.substr(0, 40) + "x" + six.substr(41)).starts_with("w: damaged: "));
}

TEST(WireFile, GoesWithOneEncoder) {
  const Wire wire = small_wire(8);
  EXPECT_TRUE(check_wire(wire, wire.fingerprint, 3, 5, "w").ok());
  EXPECT_EQ(check_wire(wire, 1, 3, 5, "w").error(),
            "w: written by the encoder 1122334455667788, not by 0000000000000001");
  EXPECT_EQ(check_wire(wire, wire.fingerprint, 3, 6, "w").error(),
            "w: 3 x 5 numbers; 3 x 6 were expected");
}

}  // namespace
}  // namespace fullbore::latentwire
