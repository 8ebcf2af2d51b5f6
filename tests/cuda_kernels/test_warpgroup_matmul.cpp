// Products by warpgroups, kernels/matmul_sm90a.cpp, on the machine that executes PTX: every layout, tile and way to share work
// out, against the oracle; and each barrier, wait and fence removed in turn.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/cuda_kernels/matmul_cases.h"
#include "tests/support/card_run.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test
using Case = MatmulCase;

// More than one tile in each direction, and k beyond a multiple of 64.
TEST(WarpgroupMatmul, EveryLayoutAgreesWithTheOracle) {
  int number = 0;
  for (const int64_t columns : {128, 256})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Case of{.m = 136,
                      .n = columns + 8,
                      .k = 88,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .dtype = number++ % 2 == 0 ? DType::bf16 : DType::f16,
                      .columns = columns};
        EXPECT_EQ(check(of), "") << of.text();
      }
}

// Shares of a tile, of two, of none: the parts of each are summed in the order of k.
TEST(WarpgroupMatmul, SharesAgreeWithTheOracle) {
  for (const auto& [shares, columns] :
       {std::pair<int64_t, int64_t>{1, 128}, {2, 256}, {3, 256}, {5, 128}}) {
    const Case of{.m = 130,
                  .n = 40,
                  .k = 200,
                  .transpose_a = columns == 128,
                  .is_wide = columns == 128,
                  .columns = columns,
                  .shares = shares};
    EXPECT_EQ(check(of), "") << of.text();
  }
}

TEST(WarpgroupMatmul, BatchesWideResultsAndSumsAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.batches = 3, .m = 72, .n = 24, .k = 16},
        Case{.m = 64, .n = 136, .k = 64, .is_wide = true},
        Case{.batches = 2, .m = 130, .n = 16, .k = 72, .transpose_b = true, .adds = true},
        Case{.m = 130, .n = 16, .k = 136, .adds = true, .shares = 2},
        Case{.m = 264, .n = 40, .k = 136, .adds = true, .columns = 256, .shares = 3},
        Case{.m = 264, .n = 40, .k = 8, .adds = true, .columns = 256}})
    EXPECT_EQ(check(of), "") << of.text();
}

// Of every column of a tile, by vectors and one by one, in the launch that makes the sums and in the one that adds shares.
TEST(WarpgroupMatmul, BiasesAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.m = 136, .n = 264, .k = 88, .has_bias = true, .columns = 256},
        Case{
            .m = 72, .n = 136, .k = 24, .transpose_b = true, .has_bias = true, .dtype = DType::f16},
        Case{.batches = 2, .m = 40, .n = 24, .k = 16, .transpose_a = true, .has_bias = true},
        Case{.m = 130, .n = 40, .k = 200, .has_bias = true, .columns = 256, .shares = 3},
        Case{.m = 130, .n = 136, .k = 136, .has_bias = true, .dtype = DType::f16, .shares = 4},
        Case{.m = 65, .n = 131, .k = 9, .has_bias = true},
        Case{.m = 9, .n = 33, .k = 130, .transpose_b = true, .has_bias = true, .shares = 2}})
    EXPECT_EQ(check(of), "") << of.text();
}

// The kernel reads and writes element by element.
TEST(WarpgroupMatmul, OddExtentsAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.m = 3, .n = 5, .k = 7},
        Case{.m = 65, .n = 33, .k = 1, .transpose_a = true, .is_wide = true},
        Case{.m = 129, .n = 131, .k = 65, .transpose_b = true, .adds = true, .shares = 2}})
    EXPECT_EQ(check(of), "") << of.text();
}

// A block goes through two tiles, so that each stage is brought, read and brought anew.
TEST(WarpgroupMatmul, EachMissingFenceWaitAndBarrierIsMet) {
  if (runs_on_card()) GTEST_SKIP() << "a card does not tell what is planted";
  for (const int64_t columns : {128, 256}) {
    const Case of{.m = 136, .n = 8, .k = 320, .columns = columns, .multiprocessors = 1};
    std::string not_met;
    EXPECT_EQ(met_of(of, "bar.sync", &not_met), 1);
    EXPECT_EQ(met_of(of, "fence.proxy.async", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.fence", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.commit_group", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.wait_group", &not_met), 2);
    EXPECT_EQ(met_of(of, "cp.async.commit_group", &not_met), 2);
    EXPECT_EQ(met_of(of, "cp.async.wait_group", &not_met), 1);
    // Of the last wait no copies are left.
    EXPECT_EQ(not_met, "cp.async.wait_group 1; ") << of.text();
  }
}

}  // namespace
}  // namespace fullbore
