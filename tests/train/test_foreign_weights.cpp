#include "fullbore/train/foreign_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/ckpt/checkpoint.h"
#include "tests/support/device.h"
#include "tests/support/evaluate.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::cpu_device;

StateEntry entry(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
  return {name, Role::parameter, {dtype, shape}};
}

/// A file of others whose tensors count on: kernel f32[2,3] is 0 1 2 / 3 4 5, cube bf16[2,2,2] 0 ... 7, bias f32[2],
/// tracked i64[].
class ForeignWeightsTest : public ::testing::Test {
 protected:
  ForeignWeightsTest() {
    std::vector<float> floats(6);
    std::iota(floats.begin(), floats.end(), 0.0F);
    std::vector<uint16_t> halves(8);
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = f32_to_bf16(static_cast<float>(i));
    const int64_t count = 7;
    const std::vector<NamedTensor> tensors = {{"kernel", {DType::f32, {2, 3}}, floats.data()},
                                              {"cube", {DType::bf16, {2, 2, 2}}, halves.data()},
                                              {"bias", {DType::f32, {2}}, floats.data()},
                                              {"tracked", {DType::i64, {}}, &count}};
    write_checkpoint(folder_ / "w.safetensors", tensors, {}).take_or_throw();
  }
  ForeignWeights mapped(const std::string& rules) {
    const std::string text = "file: {weights: w.safetensors, ignored: [tracked]}\ntensors:\n";
    write_file_atomically(folder_ / "m.yaml", text + rules).take_or_throw();
    return ForeignWeights::open(folder_ / "m.yaml");
  }
  /// The values that an entry is given, 9 where nothing was taken.
  std::vector<float> taken(const StateEntry& to, const std::string& rules) {
    const ForeignWeights source = mapped(rules);
    State state({to}, cpu_device(1));
    state.write(to.name, std::vector<float>(static_cast<size_t>(to.type.elements()), 9));
    const WeightTransfer transfer = source.plan(state.entries());
    left_ = transfer.left.empty() ? "" : transfer.left.front().reason;
    source.fill(transfer, state);
    return state.read<float>(to.name);
  }

  testing::ScratchFolder folder_;
  std::string left_;
};

TEST_F(ForeignWeightsTest, LayoutsAreChangedOnTheWay) {
  EXPECT_THAT(taken(entry("kernel", {2, 3}), ""), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(taken(entry("a", {3, 2}), "  a: kernel | transpose 1 0\n"),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(taken(entry("a", {2, 2}), "  a: kernel | slice 1 1 3\n"), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(taken(entry("a", {3}), "  a: kernel | slice 0 1 2 | reshape 3\n"),
              ElementsAre(3, 4, 5));
  EXPECT_THAT(taken(entry("a", {6}), "  a: kernel | transpose 1 0 | reshape -1\n"),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(taken(entry("a", {2, 2, 2}), "  a: cube | transpose 2 0 1\n"),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7))
      << "from bf16";
  EXPECT_THAT(taken(entry("a", {4}), "  a: [bias, bias]\n"), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(taken(entry("a", {2, 2}),
                    "  a: [bias | reshape 1 2, kernel | slice 0 0 1 | slice 1 "
                    "1 3, \"| transpose 1 0\"]\n"),
              ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(taken(entry("x.bias.y", {2}), "  x.*.y: \"*\"\n"), ElementsAre(0, 1));
  EXPECT_THAT(taken(entry("a", {0, 3}), "  a: kernel | slice 0 1 1\n"), IsEmpty());
  EXPECT_EQ(left_, "");
}

TEST_F(ForeignWeightsTest, TheFirstRuleThatMatchesCounts) {
  EXPECT_THAT(taken(entry("b.bias", {2}),
                    "  b.bias: kernel | slice 0 1 2 | slice 1 0 2 | reshape 2\n"
                    "  b.*: \"*\"\n"),
              ElementsAre(3, 4));
}

TEST_F(ForeignWeightsTest, WhatDoesNotFitIsNamedWithShapesAndTheNearestName) {
  EXPECT_THAT(taken(entry("kernels", {2}), ""), ElementsAre(9, 9));
  EXPECT_EQ(left_, "the file has no 'kernels'. Did you mean 'kernel'?");
  taken(entry("kernel", {3, 2}), "");
  EXPECT_EQ(left_, "f32[3,2] here, f32[2,3] there");
  taken(entry("a", {3, 3}), "  a: kernel | transpose 1 0\n");
  EXPECT_EQ(left_, "f32[3,3] here, f32[2,3] there, of which the mapping makes [3,2]");
  taken(entry("a", {3, 2}), "  a: kernel | transpose 1 2\n");
  EXPECT_EQ(left_, "f32[3,2] here; 'transpose 1 2' of [2,3]: each axis must be named once");
  taken(entry("a", {4}), "  a: [bias, kernel]\n");
  EXPECT_EQ(left_, "[2] and [2,3] cannot be joined");
  taken(entry("a", {4}), "  a: [bias, cube]\n");
  EXPECT_EQ(left_, "f32[4] here, f32[2], bf16[2,2,2] there");
  taken(entry("tracked", {}), "");
  EXPECT_EQ(left_, "f32[] here, i64[] there");
  EXPECT_THAT(usage_error([&] { taken(entry("layer", {2}), "  layr: bias\n"); }),
              HasSubstr("m.yaml:3: no parameter of the model is called 'layr'. Did you mean "
                        "'layer'?"));
}

TEST_F(ForeignWeightsTest, WhatNothingTakesIsToldUnlessItIsIgnored) {
  const auto unused = [](const ForeignWeights& source) {
    std::vector<std::string> names;
    for (const LeftTensor& each : source.plan({entry("bias", {2})}).unused)
      names.push_back(each.name);
    return names;
  };
  EXPECT_THAT(unused(ForeignWeights::open(folder_ / "w.safetensors")),
              ElementsAre("cube", "kernel", "tracked"));
  EXPECT_THAT(unused(mapped("")), ElementsAre("cube", "kernel"));
  const ForeignWeights source = mapped("  b: bias\n");
  EXPECT_THAT(source.lines(source.plan({entry("b", {2})})), Contains(HasSubstr("bias -> b")));
}

TEST_F(ForeignWeightsTest, FilesThatAreNoneAreRefused) {
  const auto refused = [&](const std::string& name, const std::string& contents) {
    write_file_atomically(folder_ / name, contents).take_or_throw();
    try {
      ForeignWeights::open(folder_ / name);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("a.safetensors", "short"), HasSubstr("5 bytes are no safetensors file"));
  EXPECT_THAT(refused("a.safetensors", std::string(20, '\xff')), HasSubstr("a header of"));
  EXPECT_THAT(refused("a.yaml", "file: {weights: none.safetensors}"),
              HasSubstr("none.safetensors"));
  EXPECT_THAT(refused("a.yaml", "file: {weights: \"x"), HasSubstr("malformed YAML"));
  EXPECT_THAT(refused("a.yaml", "file: {weights: [w.safetensors, w.safetensors]}"),
              HasSubstr("as well"));
}

}  // namespace
}  // namespace fullbore
