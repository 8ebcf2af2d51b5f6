#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/ckpt/gguf_file.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kGolden = testing::source_folder() + "/tests/ckpt/golden/gguf/";

std::string error_of(const std::string& bytes) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("x.gguf", bytes);
  const Result<GgufFile> file = GgufFile::open(path);
  if (file.ok()) return "";
  EXPECT_THAT(file.error(), StartsWith(path));
  return file.error();
}

TEST(Gguf, ReadsWhatThePythonPackageWrites) {
  const GgufFile file = GgufFile::open(kGolden + "every.gguf").take_or_throw();
  EXPECT_EQ(file.text("general.architecture").value(), "llama");
  EXPECT_EQ(file.text("test.string").value(), "caf\u00e9 \U0001F600");
  EXPECT_EQ(file.whole("test.uint8").value(), 200U);
  EXPECT_EQ(file.whole("test.uint16").value(), 40000U);
  EXPECT_EQ(file.whole("test.uint32").value(), 4000000000U);
  EXPECT_EQ(file.whole("test.uint64").value(), uint64_t{1} << 40);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("test.int8")), -5);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("test.int16")), -300);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("test.int32")), -70000);
  EXPECT_EQ(std::get<int64_t>(file.metadata().at("test.int64")), -(int64_t{1} << 40));
  EXPECT_EQ(file.real("test.float32").value(), 0.5);
  EXPECT_EQ(file.real("test.float64").value(), 0.1);
  EXPECT_EQ(std::get<bool>(file.metadata().at("test.bool")), true);
  EXPECT_EQ(std::get<std::vector<std::string>>(file.metadata().at("test.texts")),
            (std::vector<std::string>{"a", "", "\u0120the"}));
  EXPECT_EQ(std::get<std::vector<int64_t>>(file.metadata().at("test.numbers")),
            (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(std::get<std::vector<double>>(file.metadata().at("test.reals")),
            (std::vector<double>{0.25, -1.5}));
  EXPECT_EQ(std::get<std::vector<bool>>(file.metadata().at("test.truths")),
            (std::vector<bool>{true, false}));
  EXPECT_THAT(file.text("test.bool").error(), HasSubstr("'test.bool' has another type; a text"));
  EXPECT_THAT(file.whole("no").error(), HasSubstr("'no' is missing; a whole number"));

  const nlohmann::json expected =
      nlohmann::json::parse(read_file(kGolden + "expected.json").take_or_throw());
  EXPECT_EQ(file.tensors().size(), expected.size());
  for (const auto& [name, known] : expected.items()) {
    const GgufTensor* const tensor = file.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->type, parse_gguf_type(known["type"].get<std::string>()));
    EXPECT_EQ(tensor->shape.dims(), known["shape"].get<std::vector<int64_t>>());
    EXPECT_EQ(file.read(*tensor).take_or_throw(), known["values"].get<std::vector<float>>())
        << name;
  }
  // A part of a tensor.
  std::vector<float> part(32);
  const GgufTensor& blocks = *file.find("blk.0.q4_1");
  ASSERT_TRUE(file.read(blocks, 64, part).ok());
  const std::vector<float> all = file.read(blocks).take_or_throw();
  EXPECT_EQ(part, std::vector<float>(all.begin() + 64, all.begin() + 96));
}

TEST(Gguf, WhatIsWrittenIsRead) {
  const testing::ScratchFolder folder;
  // tools/interop gguf reads the same file with the Python package.
  const char* const wanted = std::getenv("FULLBORE_GGUF");
  const std::string path = wanted != nullptr ? wanted : folder / "ours.gguf";
  std::vector<float> values(128);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.37) * 3);
  std::vector<GgufSource> tensors;
  for (const auto& [name, type] : {std::pair{"f32.weight", GgufType::f32},
                                   {"f16.weight", GgufType::f16},
                                   {"bf16.weight", GgufType::bf16},
                                   {"q8_0.weight", GgufType::q8_0}})
    tensors.push_back({name, {2, 64}, type, [&] { return values; }});
  const GgufMetadata metadata = {{"general.architecture", std::string("gpt2")},
                                 {"test.whole", uint64_t{7}},
                                 {"test.below", int64_t{-7}},
                                 {"test.real", 0.5},
                                 {"test.truth", true},
                                 {"test.wide", uint64_t{1} << 40},
                                 {"test.texts", std::vector<std::string>{"a", "\u0120b"}},
                                 {"test.numbers", std::vector<int64_t>{1, -2}}};
  ASSERT_TRUE(write_gguf(path, metadata, tensors).ok());
  const GgufFile file = GgufFile::open(path).take_or_throw();
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), 4U);
  // Half a step: of 10 or 7 bits behind the leading one; of 1/127 of the largest, and of that in f16.
  const double bounds[] = {0, 3 * 0x1p-11, 3 * 0x1p-8, 3 / 254.0 + 3 * 0x1p-11};
  for (size_t i = 0; i < 4; ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.name, tensors[i].name);
    EXPECT_EQ(tensor.type, tensors[i].type);
    EXPECT_EQ(tensor.begin % kGgufAlignment, 0U);
    const std::vector<float> read = file.read(tensor).take_or_throw();
    double worst = 0;
    for (size_t k = 0; k < read.size(); ++k)
      worst = std::max(worst, std::fabs(static_cast<double>(read[k]) - values[k]));
    EXPECT_LE(worst, bounds[i]) << tensor.name;
  }
}

/// A file with one tensor of 32 values, of which a test changes something.
GgufHeader small_header() {
  GgufHeader header;
  header.metadata = {{"general.architecture", std::string("gpt2")}};
  header.tensors = {{"a", {32}, GgufType::f32, 0, 128}};
  return header;
}
std::string small_file(const GgufHeader& header) {
  return encode_gguf_header(header) + std::string(256, '\0');
}

TEST(Gguf, RefusesWhatItIsNot) {
  const std::string good = small_file(small_header());
  ASSERT_EQ(error_of(good), "");
  const auto with = [&](size_t at, auto value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  EXPECT_THAT(error_of("GGML"), HasSubstr("byte 0: the magic GGUF was expected"));
  EXPECT_THAT(error_of(with(4, uint32_t{1})), HasSubstr("byte 4: version 1; version 2 or 3"));
  EXPECT_THAT(error_of(with(4, uint32_t{0x03000000})), HasSubstr("the file is big endian"));
  EXPECT_THAT(error_of(with(8, uint64_t{1} << 60)),
              HasSubstr("byte 16: 1152921504606846976 tensors"));
  EXPECT_THAT(error_of(with(16, uint64_t{1} << 50)), HasSubstr(" keys; at most"));
  EXPECT_THAT(error_of(with(24, uint64_t{1} << 40)), HasSubstr("bytes of a text; at most"));
  EXPECT_THAT(error_of(with(52, uint32_t{99})), HasSubstr("a value of type 99"));
  // The tensor: 68 name, 77 dimensions, 81 extent, 89 type, 93 place.
  const size_t tensor = 24 + 8 + 20 + 4 + 8 + 4;
  EXPECT_THAT(error_of(with(tensor + 9, uint32_t{5})), HasSubstr("'a' has 5 dimensions"));
  EXPECT_THAT(error_of(with(tensor + 13, uint64_t{0})), HasSubstr("'a' is empty or too large"));
  EXPECT_THAT(error_of(with(tensor + 13, uint64_t{1} << 62)),
              HasSubstr("'a' is empty or too large"));
  EXPECT_THAT(error_of(with(tensor + 13, uint64_t{100})), HasSubstr("past the end of the file"));
  EXPECT_THAT(error_of(with(tensor + 21, uint32_t{12})),
              HasSubstr("'a' is stored as Q4_K; F32, F16, BF16, Q8_0 and Q4_1 are read"));
  EXPECT_THAT(error_of(with(tensor + 25, uint64_t{8})),
              HasSubstr("no multiple of the alignment 32"));
  EXPECT_THAT(error_of(with(tensor + 25, ~uint64_t{31})), HasSubstr("past the end of the file"));

  GgufHeader header = small_header();
  header.tensors.push_back(header.tensors[0]);
  EXPECT_THAT(error_of(small_file(header)), HasSubstr("tensor 'a' occurs twice"));
  header.tensors[1].name = "b";
  std::string bytes = small_file(header);
  bytes.replace(bytes.find('b') + 1 + 4 + 8 + 4, 8, std::string(8, '\0'));
  EXPECT_THAT(error_of(bytes), HasSubstr("tensors 'a' and 'b' overlap"));
  header = small_header();
  header.tensors[0] = {"a", {4, 8}, GgufType::q8_0, 0, 34};
  EXPECT_THAT(error_of(small_file(header)), HasSubstr("whose rows of 8 are no multiple of 32"));
  header = small_header();
  header.metadata["general.alignment"] = uint64_t{24};
  EXPECT_THAT(error_of(small_file(header)), HasSubstr("general.alignment is no power of two"));
  for (size_t size = 0; size < good.size() - 128; ++size)
    ASSERT_FALSE(parse_gguf_header(good.substr(0, size), size).ok()) << size;
}

}  // namespace
}  // namespace fullbore
