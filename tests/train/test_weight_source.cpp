#include "fullbore/train/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fullbore/base/error.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/run_record.h"
#include "fullbore/train/tensor_groups.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::cpu_device;
using testing_support::Edited;

/// A checkpoint whose tensors count on: table [2,3] is 0 1 2 / 3 4 5, bias [3] 0 1 2, other [2] 0 1.
class WeightSourceTest : public ::testing::Test {
 protected:
  WeightSourceTest() {
    State state({{"table", Role::parameter, {DType::f32, {2, 3}}},
                 {"bias", Role::parameter, {DType::f32, {3}}},
                 {"other", Role::frozen, {DType::f32, {2}}}},
                cpu_device(1));
    for (const StateEntry& entry : state.entries()) {
      Edited<float> values(state, entry.name);
      std::iota(values.begin(), values.end(), 0.0F);
    }
    const TensorGroup weights = tensor_groups(state, Compression::none)[0];
    RunRecord record;
    record.config = "{}";
    record.tokenizer = "{}";
    write_checkpoint_folder(folder_ / "checkpoint", {{weights}, to_texts(record)}).take_or_throw();
  }
  /// The one tensor of a model, 9 where nothing was taken.
  template <class T>
  std::vector<float> taken_as(const StateEntry& entry, const TableOrigins& origins) {
    const WeightSource source = WeightSource::open(folder_ / "checkpoint");
    State state({entry}, cpu_device(1));
    std::ranges::fill(Edited<T>(state, entry.name), T{9});
    const WeightTransfer transfer = source.plan(state.entries(), {origins});
    source.fill(transfer, state);
    lines_ = transfer_lines(source, transfer);
    const auto values = state.read<T>(entry.name);
    return {values.begin(), values.end()};
  }
  std::vector<float> taken(const StateEntry& entry, const TableOrigins& origins) {
    return entry.type.dtype == DType::i32 ? taken_as<int32_t>(entry, origins)
                                          : taken_as<float>(entry, origins);
  }

  testing::ScratchFolder folder_;
  std::vector<std::string> lines_;
};

StateEntry entry(const std::string& name, const Shape& shape) {
  return {name, Role::parameter, {DType::f32, shape}};
}

TEST_F(WeightSourceTest, RowsAndColumnsAreTakenFromWhereTheyStand) {
  EXPECT_THAT(taken(entry("table", {3, 3}), {"table", "table", {1, -1, 0}}),
              ElementsAre(3, 4, 5, 9, 9, 9, 0, 1, 2));
  EXPECT_THAT(lines_, ::testing::Contains("in part  table: 2 of 3 rows"));
  EXPECT_THAT(taken(entry("table", {2, 4}), {"table", "table", {}, {2, -1, 0, 1}}),
              ElementsAre(2, 9, 0, 1, 5, 9, 3, 4));
  EXPECT_THAT(lines_, ::testing::Contains("in part  table: 3 of 4 columns"));
  EXPECT_THAT(taken(entry("table", {3, 2}), {"table", "table", {-1, 1, 0}, {-1, 2}}),
              ElementsAre(9, 9, 9, 5, 9, 2));
  EXPECT_THAT(lines_, ::testing::Contains("in part  table: 2 of 3 rows and 1 of 2 columns"));
  EXPECT_THAT(taken(entry("bias", {2}), {"bias", "bias", {2, -1}}), ElementsAre(2, 9));
  EXPECT_THAT(taken(entry("head", {3}), {"head", "bias", {1, 2, 0}}), ElementsAre(1, 2, 0));
  EXPECT_THAT(lines_, ::testing::Contains("in part  head: 3 of 3 rows of bias"));
}

TEST_F(WeightSourceTest, WhatDoesNotGoTogetherIsLeft) {
  const auto expect_left = [&](const StateEntry& here, const TableOrigins& origins,
                               const std::string& reason) {
    EXPECT_THAT(taken(here, origins), ::testing::Each(9));
    EXPECT_THAT(lines_, ::testing::Contains("random   " + here.name + ": " + reason));
  };
  expect_left(entry("table", {3, 4}), {"table", "table", {0, 1, -1}},
              "f32[3,4] here, f32[2,3] in the checkpoint");
  // Columns alone go over where rows are the same.
  expect_left(entry("table", {3, 3}), {"table", "table", {}, {0, 1, 2}},
              "f32[3,3] here, f32[2,3] in the checkpoint");
  expect_left({"table", Role::parameter, {DType::i32, {2, 3}}}, {"table", "table", {0, 1}, {}},
              "i32[2,3] here, f32[2,3] in the checkpoint");
  expect_left(entry("none", {2}), {"none", "none", {0, 1}}, "the checkpoint has none");
  EXPECT_THAT(lines_, ::testing::Contains("unused   table: the model has none"));
}

TEST_F(WeightSourceTest, NothingBeyondATableIsRead) {
  const auto error = [&](const TableOrigins& origins) -> std::string {
    try {
      taken(entry("table", {2, 3}), origins);
      return "";
    } catch (const DataError& refusal) {
      return refusal.what();
    }
  };
  EXPECT_THAT(error({"table", "table", {0, 2}}), HasSubstr("row 2 of 'table' is asked for"));
  EXPECT_THAT(error({"table", "table", {}, {0, 3, 1}}),
              HasSubstr("column 3 of 'table' is asked for, which is f32[2,3]"));
  EXPECT_THAT(error({"table", "bias", {}, {0, 0, 0}}), HasSubstr("column 0 of 'bias'"));
}

}  // namespace
}  // namespace fullbore
