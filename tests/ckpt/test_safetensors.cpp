#include "fullbore/ckpt/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

TEST(Safetensors, EveryDTypeHasItsPublishedName) {
  const std::pair<DType, const char*> names[] = {
      {DType::f64, "F64"}, {DType::f32, "F32"},      {DType::bf16, "BF16"},
      {DType::f16, "F16"}, {DType::i64, "I64"},      {DType::i32, "I32"},
      {DType::u8, "U8"},   {DType::boolean, "BOOL"}, {DType::i8, "I8"}};
  EXPECT_EQ(std::size(names), std::size(kAllDTypes));
  for (const auto& [dtype, name] : names) {
    EXPECT_EQ(safetensors_dtype(dtype), name);
    EXPECT_EQ(parse_safetensors_dtype(name), dtype);
  }
  EXPECT_EQ(parse_safetensors_dtype("F8_E4M3"), std::nullopt);
  EXPECT_EQ(parse_safetensors_dtype("f32"), std::nullopt);
}

// As other programs write it: spaces, another order of keys, an empty tensor between two.
TEST(Safetensors, HeadersOfOthersAreRead) {
  const SafetensorsHeader header =
      parse_safetensors_header(
          R"({ "b": {"shape": [2, 2], "data_offsets": [4, 20], "dtype": "F32"},
               "empty": {"dtype": "I64", "shape": [3, 0], "data_offsets": [4, 4]},
               "__metadata__": {"format": "pt", "note": "a\u00e9\n"},
               "a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]} }   )",
          20)
          .take_or_throw();
  ASSERT_EQ(header.tensors.size(), 3U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].type.text(), "bf16[2]");
  EXPECT_EQ(header.tensors[1].type.text(), "i64[3,0]");
  EXPECT_EQ(header.tensors[2].begin, 4U);
  EXPECT_EQ(header.tensors[2].bytes(), 16U);
  EXPECT_EQ(header.metadata.at("note"), "a\u00E9\n");
}

TEST(Safetensors, EncodingAndParsingAreInverse) {
  SafetensorsHeader header;
  header.tensors = {{"x.\"y\"", {DType::f64, Shape{2, 3}}, 0, 48},
                    {"", {DType::u8, Shape{}}, 48, 49},
                    {"z", {DType::boolean, Shape{0}}, 49, 49}};
  header.metadata = {{"k", "v\\\n"}, {"", ""}};
  const std::string json = encode_safetensors_header(header).take_or_throw();
  EXPECT_EQ(json.size() % 8, 0U);
  const SafetensorsHeader again = parse_safetensors_header(json, 49).take_or_throw();
  EXPECT_EQ(again.metadata, header.metadata);
  EXPECT_EQ(encode_safetensors_header(again).take_or_throw(), json);
}

TEST(Safetensors, DataBeginWhereTheyAreAskedTo) {
  for (size_t letters = 0; letters < 70; ++letters) {
    SafetensorsHeader header;
    header.tensors = {{std::string(letters, 'x'), {DType::u8, Shape{3}}, 0, 3}};
    for (const uint64_t alignment : {8U, 64U, 4096U}) {
      const std::string json = encode_safetensors_header(header, alignment).take_or_throw();
      EXPECT_EQ((kSafetensorsLengthBytes + json.size()) % alignment, 0U);
      EXPECT_LT(json.size() - json.find_last_of('}') - 1, alignment) << "no more than needed";
      EXPECT_EQ(parse_safetensors_header(json, 3).take_or_throw().tensors[0].name.size(), letters);
    }
  }
}

TEST(Safetensors, WrongHeadersAreRefusedWithTheirReason) {
  const struct {
    const char* json;
    uint64_t data_bytes;
    const char* reason;
  } cases[] = {
      {"", 0, "byte 8: the header does not begin with '{'"},
      {" {}", 0, "byte 8: the header does not begin with '{'"},
      {"[]", 0, "byte 8: the header does not begin with '{'"},
      {"{", 0, "byte 9: the header's JSON is malformed"},
      {"{}x", 0, "byte 10: the header's JSON is malformed near"},
      {"{\"a\xFF\":1}", 0, "JSON is malformed"},
      {"{}", 1, "the tensors take 0 bytes, the file holds 1"},
      {R"({"a":1})", 0, "a number where the header of 'a' has none"},
      {R"({"a":null})", 0, "null where the header of 'a' has none"},
      {R"({"a":[{}]})", 0, "a list where the header of 'a' has none"},
      {R"({"a":{}})", 0, "tensor 'a' lacks dtype, shape or data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 0, "tensor 'a' lacks dtype, shape or data_offsets"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4,
       "tensor 'a' has the unknown dtype 'F33'"},
      {R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4, "a list where"},
      {R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", 4, "a text where"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "a number where"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "a negative number where"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "a fraction where"},
      {R"({"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}})", 4, "a boolean where"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "a list where"},
      {R"({"a":{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}})", 4, "'a' is nested too deep"},
      {R"({"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}})", 4, "JSON is malformed"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4,
       "a fraction where"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
       "a number where"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4,
       "the shape of tensor 'a' is too large to exist"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
       "tensor 'a' is f32[2], 8 bytes, but its data_offsets span 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
       "data_offsets of tensor 'a' are no range"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4,
       "data_offsets of tensor 'a' are no range"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[]}})", 4,
       "data_offsets of tensor 'a' are no range"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "field 'dtype' of tensor 'a' occurs twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1}})", 4,
       "tensor 'a' has an unknown field 'extra'"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
           "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "'a' occurs twice"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
           "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "tensor 'b' begins at byte 1 of the data, overlapping what reaches to byte 2"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
           "b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       2, "tensor 'b' begins at byte 0 of the data, overlapping"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
           "b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
       5, "tensor 'b' begins at byte 3 of the data, leaving a hole from byte 2"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
       "tensor 'a' begins at byte 1 of the data, leaving a hole from byte 0"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1,
       "the tensors take 2 bytes, the file holds 1"},
      {R"({"__metadata__":"x"})", 0, "a text where the header of '__metadata__' has none"},
      {R"({"__metadata__":{"a":1}})", 0, "a number where the header of '__metadata__' has none"},
      {R"({"__metadata__":{"a":{}}})", 0, "'__metadata__' is nested too deep"},
      {R"({"__metadata__":{"a":[]}})", 0, "a list where the header of '__metadata__' has none"},
      {R"({"__metadata__":{"a":"x","a":"y"}})", 0, "metadata 'a' occurs twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "'__metadata__' occurs twice"},
  };
  for (const auto& [json, data_bytes, reason] : cases) {
    const Result<SafetensorsHeader> result = parse_safetensors_header(json, data_bytes);
    ASSERT_FALSE(result.ok()) << json;
    EXPECT_THAT(result.error(), HasSubstr(reason)) << json;
  }
}

TEST(Safetensors, HostileNestingCostsNothing) {
  for (const char* open : {"[", "{\"a\":", "{\"a\":["}) {
    std::string json = "{\"a\":";
    for (int i = 0; i < 300'000; ++i) json += open;
    EXPECT_FALSE(parse_safetensors_header(json, 0).ok());
  }
}

}  // namespace
}  // namespace fullbore
