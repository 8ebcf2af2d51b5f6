// Arrays of mzML as other programs write them, and their limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/support/paths.h"
#include "workloads/peptide/binary_array.h"
#include "workloads/peptide/shuffled_array.h"
#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using testing::base64;
using testing::deflated;
using ::testing::HasSubstr;
using Numbers = BinaryEncoding::Numbers;
using Compression = BinaryEncoding::Compression;

std::string zstd_frame(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const size_t count = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 3);
  EXPECT_EQ(ZSTD_isError(count), 0U);
  packed.resize(count);
  return packed;
}

/// A frame that does not say how many bytes it holds.
std::string silent_zstd_frame(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  const size_t count =
      ZSTD_compress2(context, packed.data(), packed.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  EXPECT_EQ(ZSTD_isError(count), 0U);
  packed.resize(count);
  EXPECT_EQ(ZSTD_getFrameContentSize(packed.data(), packed.size()), ZSTD_CONTENTSIZE_UNKNOWN);
  return packed;
}

struct Decoded {
  std::vector<double> values;
  std::string problem;
};

Decoded decode(const std::string& bytes, BinaryEncoding encoding, size_t most = 10000) {
  Decoded decoded;
  std::string scratch;
  decoded.problem =
      decode_binary_array(base64(bytes), encoding, most, scratch, decoded.values).value_or("");
  return decoded;
}

std::string number_bytes(uint64_t value, size_t width) {
  std::string bytes;
  for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

TEST(MzmlArrays, AreReadAsOtherProgramsReadThem) {
  const std::string folder =
      fullbore::testing::source_folder() + "/workloads/peptide/tests/golden/";
  const auto golden = nlohmann::json::parse(read_file(folder + "arrays.json").value());
  const testing::FileContents contents = testing::read_file(folder + "arrays.mzML");
  ASSERT_EQ(contents.error, "");
  ASSERT_EQ(contents.spectra.size(), golden.size());
  for (const Spectrum& spectrum : contents.spectra) {
    SCOPED_TRACE(spectrum.title);
    const auto mz = golden.at(spectrum.title).at("mz").get<std::vector<double>>();
    const auto intensity = golden.at(spectrum.title).at("intensity").get<std::vector<double>>();
    ASSERT_EQ(spectrum.mz.size(), mz.size());
    for (size_t i = 0; i < mz.size(); ++i) {
      EXPECT_DOUBLE_EQ(spectrum.mz[i], mz[i]);
      EXPECT_FLOAT_EQ(spectrum.intensity[i], static_cast<float>(intensity[i]));
    }
  }
}

TEST(MzmlArrays, EmptyOnesAreEmptyInEveryEncoding) {
  for (const Compression compression : {Compression::none, Compression::zlib, Compression::zstd})
    for (int numbers = 0; numbers <= static_cast<int>(Numbers::numpress_logarithms); ++numbers) {
      const Decoded decoded = decode("", {.bits = 64,
                                          .numbers = Numbers{static_cast<uint8_t>(numbers)},
                                          .compression = compression});
      EXPECT_EQ(decoded.problem, "");
      EXPECT_TRUE(decoded.values.empty());
    }
}

TEST(MzmlArrays, ZlibIsLimited) {
  const BinaryEncoding encoding = {.bits = 64, .compression = Compression::zlib};
  const std::string packed = deflated(std::string(80000, '\0'), false);
  EXPECT_EQ(decode(packed, encoding).values.size(), 10000U);
  EXPECT_EQ(decode(packed, encoding, 9999).problem, "holds more than 79992 bytes");
}

TEST(MzmlArrays, ZstdIsLimited) {
  const BinaryEncoding encoding = {.bits = 64, .compression = Compression::zstd};
  const std::string bytes(80000, '\0');
  for (const std::string& packed :
       {zstd_frame(bytes), silent_zstd_frame(bytes),
        zstd_frame(bytes.substr(0, 12)) + silent_zstd_frame(bytes.substr(12))}) {
    const Decoded decoded = decode(packed, encoding);
    EXPECT_EQ(decoded.problem, "");
    EXPECT_EQ(decoded.values, std::vector<double>(10000, 0));
    EXPECT_EQ(decode(packed, encoding, 9999).problem, "holds more than 79992 bytes");
    for (size_t size = 1; size < packed.size(); ++size)
      EXPECT_NE(decode(packed.substr(0, size), encoding).problem, "") << size;
  }
  EXPECT_THAT(decode("no zstd at all", encoding).problem, HasSubstr("its zstd data are damaged"));
  const BinaryEncoding integers = {.numbers = Numbers::numpress_integers,
                                   .compression = Compression::zstd};
  EXPECT_EQ(decode(zstd_frame(std::string(5000, '\x88')), integers).values.size(), 10000U);
  EXPECT_EQ(decode(zstd_frame(std::string(5001, '\x88')), integers).problem,
            "has more than 10000 numbers");
  EXPECT_THAT(decode(zstd_frame(std::string(1000000, '\x88')), integers).problem,
              HasSubstr("holds more than"));
}

TEST(MzmlArrays, ShuffledBytesByHand) {
  EXPECT_EQ(unshuffle("", 4), "");
  EXPECT_EQ(unshuffle("adgbehcfi", 3), "abcdefghi");
  EXPECT_EQ(decode(zstd_frame("123456789"),
                   {.bits = 32, .numbers = Numbers::shuffled, .compression = Compression::zstd})
                .problem,
            "has 9 bytes, no multiple of 4");
}

TEST(MzmlArrays, DictionariesByHand) {
  const auto head = [](uint64_t offset, uint64_t count) {
    return number_bytes(offset, 8) + number_bytes(count, 8);
  };
  std::string plain;
  const auto refusal = [&](const std::string& bytes, size_t most = 100) {
    return decode_dictionary(bytes, 4, most, plain).value_or("");
  };
  const std::string two = head(24, 2) + "aebfcgdh";
  EXPECT_EQ(refusal(two + std::string({1, 0, 1})), "");
  EXPECT_EQ(plain, "efghabcdefgh");
  EXPECT_EQ(refusal(head(16, 0)), "");
  EXPECT_EQ(plain, "");
  EXPECT_EQ(refusal("short"), "has 5 bytes, expected a dictionary's head of 16");
  EXPECT_EQ(refusal(two + std::string({1, 2})), "number 2 is row 2 of a dictionary of 2");
  EXPECT_EQ(refusal(two + std::string({1, 0, 1}), 2), "has more than 2 numbers");
  EXPECT_EQ(refusal(head(25, 2) + "aebfcgdh1"),
            "its dictionary of 2 values ends at byte 25, of 25");
  EXPECT_EQ(refusal(head(24, 2) + "aeb"), "its dictionary of 2 values ends at byte 24, of 19");
  EXPECT_THAT(refusal(head(16, uint64_t{1} << 62) + "aebfcgdh"), HasSubstr("its dictionary of"));
  EXPECT_THAT(refusal(head(~uint64_t{0}, 2) + "aebfcgdh"), HasSubstr("its dictionary of 2 values"));
}

TEST(MzmlArrays, RowsOfDictionariesTakeTheBytesTheyNeed) {
  for (const uint64_t distinct : {255, 256, 65535, 65536}) {
    const size_t row_width = distinct < 256 ? 1 : distinct < 65536 ? 2 : 4;
    std::string elements;
    for (size_t byte = 0; byte < 4; ++byte)
      for (uint64_t i = 0; i < distinct; ++i) elements += static_cast<char>(i >> (8 * byte));
    const uint64_t rows[] = {distinct - 1, 0, 254};
    std::string bytes = number_bytes(16 + 4 * distinct, 8) + number_bytes(distinct, 8) + elements;
    for (size_t byte = 0; byte < row_width; ++byte)
      for (const uint64_t row : rows) bytes += static_cast<char>(row >> (8 * byte));
    std::string plain;
    EXPECT_EQ(decode_dictionary(bytes, 4, 100, plain), std::nullopt);
    EXPECT_EQ(plain, number_bytes(distinct - 1, 4) + number_bytes(0, 4) + number_bytes(254, 4));
    EXPECT_EQ(decode_dictionary(bytes + "\1", 4, 100, plain).has_value(), row_width > 1);
  }
}

}  // namespace
}  // namespace fullbore::peptide
