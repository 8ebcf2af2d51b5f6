// Products by pairs of blocks, kernels/matmul_clusters_sm90a.cpp, on the machine that executes PTX: every layout, tile and way to
// share work out, against the oracle; and each barrier, wait and fence removed in turn.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/cuda_kernels/matmul_cases.h"
#include "tests/support/card_run.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test
using Case = MatmulCase;

// More than one tile in each direction, the last of which have rows of the first block alone; and k beyond a multiple of 64.
TEST(ClusterMatmul, EveryLayoutAgreesWithTheOracle) {
  int number = 0;
  for (const int64_t columns : {128, 256})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Case of{.m = 264,
                      .n = columns + 8,
                      .k = 88,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .dtype = number++ % 2 == 0 ? DType::bf16 : DType::f16,
                      .columns = columns,
                      .multiprocessors = 4,
                      .by_clusters = true};
        EXPECT_EQ(check(of), "") << of.text();
      }
}

// More units than stages, over the ends of tiles: barriers go through several phases.
TEST(ClusterMatmul, StagesAreBroughtAgain) {
  for (const int64_t columns : {128, 256}) {
    const Case of{.m = 264, .n = 16, .k = 456, .columns = columns, .by_clusters = true};
    EXPECT_EQ(check(of), "") << of.text();
  }
}

// Shares of a tile, of two, of none: the parts of each are summed in the order of k.
TEST(ClusterMatmul, SharesAgreeWithTheOracle) {
  for (const auto& [shares, columns] :
       {std::pair<int64_t, int64_t>{1, 128}, {2, 256}, {3, 256}, {5, 128}}) {
    const Case of{.m = 264,
                  .n = 40,
                  .k = 200,
                  .transpose_a = columns == 128,
                  .is_wide = columns == 128,
                  .columns = columns,
                  .shares = shares,
                  .by_clusters = true};
    EXPECT_EQ(check(of), "") << of.text();
  }
}

TEST(ClusterMatmul, BatchesWideResultsSumsAndBiasesAgreeWithTheOracle) {
  for (const Case& of :
       {Case{.batches = 3, .m = 72, .n = 24, .k = 16, .by_clusters = true},
        Case{.m = 64, .n = 136, .k = 64, .is_wide = true, .by_clusters = true},
        Case{.batches = 2,
        .m = 130,
        .n = 16,
        .k = 72,
        .transpose_b = true,
        .adds = true,
        .by_clusters = true},
        Case{.m = 130, .n = 16, .k = 136, .adds = true, .shares = 2, .by_clusters = true},
        Case{.m = 264,
        .n = 40,
        .k = 136,
        .adds = true,
        .columns = 256,
        .shares = 3,
        .by_clusters = true},
        Case{.m = 136, .n = 264, .k = 88, .has_bias = true, .columns = 256, .by_clusters = true},
        Case{.m = 130,
        .n = 136,
        .k = 136,
        .has_bias = true,
        .dtype = DType::f16,
        .shares = 4,
        .by_clusters = true}})
    EXPECT_EQ(check(of), "") << of.text();
}

TEST(ClusterMatmul, EachMissingFenceWaitAndBarrierIsMet) {
  if (runs_on_card()) GTEST_SKIP() << "a card does not tell";
  for (const int64_t columns : {128, 256}) {
    const Case of{.m = 264, .n = 8, .k = 456, .columns = columns, .by_clusters = true};
    std::string not_met;
    EXPECT_EQ(met_of(of, "mbarrier.init", &not_met), columns == 128 ? 12 : 8);
    EXPECT_EQ(met_of(of, "mbarrier.try_wait", &not_met), 2);
    EXPECT_EQ(met_of(of, "mbarrier.arrive.expect_tx", &not_met), 1);
    EXPECT_EQ(met_of(of, "mbarrier.arrive.release", &not_met), 2);
    EXPECT_EQ(met_of(of, "barrier.cluster.wait", &not_met), 2);
    EXPECT_EQ(met_of(of, "wgmma.fence", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.commit_group", &not_met), 1);
    EXPECT_EQ(met_of(of, "wgmma.wait_group", &not_met), 2);
    EXPECT_EQ(not_met, "") << of.text();
  }
}

}  // namespace
}  // namespace fullbore
