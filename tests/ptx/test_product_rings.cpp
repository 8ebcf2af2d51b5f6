// Products of a warpgroup from stages that a thread of another warp has brought: who may bring the next one, and when.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/ptx/tensor_kernel.h"

namespace fullbore::ptx {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kUnits = 5;

/// Thread 128 has 64 rows of 64 brought to each of two stages in turn; the warpgroup multiplies the first 16 columns of them by those of
/// the first 8 rows. `leaver`: the thread that says so for all of it.
std::string body_of(int leaver) {
  const std::string stage =
      "and.b32 %r5, %r4, 1;\nbfe.u32 %r6, %r4, 1, 1;\nxor.b32 %r7, %r6, 1;\nshl.b32 %r8, %r5, 3;\n"
      "add.u32 %r9, %r3, %r8;\nmad.lo.u32 %r10, %r5, 8192, %r2;\n";
  return "setp.ne.u32 %p1, %r0, 128;\n@%p1 bra READY;\n"
         "mbarrier.init.shared::cta.b64 [%r3], 1;\nmbarrier.init.shared::cta.b64 [%r3+8], 1;\n"
         "mbarrier.init.shared::cta.b64 [%r3+16], 1;\nmbarrier.init.shared::cta.b64 [%r3+24], 1;\n"
         "fence.mbarrier_init.release.cluster;\nREADY:\nbar.sync 0;\nmov.u32 %r4, 0;\n"
         "setp.lt.u32 %p2, %r0, 128;\n@%p2 bra GROUP;\n@%p1 bra END;\nmov.u32 %r12, 0;\nBRING:\n" +
         stage + wait_for("LEFT", "%r9+16", "%r7") +
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 8192;\nshl.b32 %r11, %r4, 6;\n" +
         kCopy3d + " [%r10], [%l0, {%r12, %r11, %r12}], [%r9];\nadd.u32 %r4, %r4, 1;\n" +
         fmt::format(
             "setp.lt.u32 %p3, %r4, {};\n@%p3 bra BRING;\nbra END;\nGROUP:\n"
             "setp.ne.u32 %p4, %r0, {};\n",
             kUnits, leaver) +
         "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, "
         "%f0;\nTAKE:\n" +
         stage + wait_for("BROUGHT", "%r9", "%r6") +
         "shr.u32 %r13, %r10, 4;\ncvt.u64.u32 %l2, %r13;\nor.b64 %l2, %l2, 0x4000004000010000;\n"
         "wgmma.fence.sync.aligned;\n"
         "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n"
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %l2, %l2, adds, "
         "1, "
         "1, 0, 0;\n}\n"
         "wgmma.commit_group.sync.aligned;\n"
         "wgmma.wait_group.sync.aligned 0;\n"
         "@!%p4 mbarrier.arrive.shared::cta.b64 _, [%r9+16];\n" +
         fmt::format("add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, {};\n@%p3 bra TAKE;\n", kUnits) +
         "mul.wide.u32 %l3, %r0, 4;\nadd.u64 %l3, %l1, %l3;\nst.global.f32 [%l3], %f0;\nEND:\n";
}

TensorLaunch launch_of(uint64_t seed) {
  return {
      .tensor = {.extents = {64, 64 * kUnits, 1}, .box = {64, 64, 1}, .dtype = 9, .is_bf16 = true},
      .threads = 160,
      .shared_bytes = 2 * 8192,
      .out_words = 128,
      .seed = seed};
}

// Products are over for all four warps when they are for one, so any of its threads may say so.
TEST(PtxProductRings, AnyThreadOfAWarpgroupLeavesForAllOfIt) {
  for (const int leaver : {0, 1, 77, 127})
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const TensorLaunch launch = launch_of(seed);
      const std::vector<uint32_t> out = launch.run(body_of(leaver));
      for (const int64_t row : {0, 5, 55}) {
        float sum = 0;
        for (int64_t unit = 0; unit < kUnits; ++unit)
          for (int64_t k = 0; k < 16; ++k)
            sum +=
                static_cast<float>(((64 * unit + row) * 64 + k) % 7 * ((64 * unit * 64 + k) % 7));
        // Lane 4 g of warp w has row 16 w + g, column 0.
        EXPECT_EQ(std::bit_cast<float>(out[static_cast<size_t>(row / 16 * 32 + row % 16 * 4)]), sum)
            << row << ", seed " << seed;
      }
    }
}

TEST(PtxProductRings, EachWaitIsMissed) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const TensorLaunch launch = launch_of(seed);
    const std::string body = body_of(77);
    ASSERT_EQ(launch.fault_of(body), "none");
    const auto is_race =
        AnyOf(HasSubstr("is brought over what a product of block 0 has read"),
              HasSubstr("awaits a box of a tensor"), HasSubstr("a box for an mbarrier of block 0"));
    // The stage is left before products have read it.
    const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
    const std::string arrival = "@!%p4 mbarrier.arrive.shared::cta.b64 _, [%r9+16];\n";
    EXPECT_THAT(launch.fault_of(replaced(body, wait + arrival, arrival + wait)), is_race) << seed;
    EXPECT_THAT(
        launch.fault_of(replaced(body, "wait_group.sync.aligned 0", "wait_group.sync.aligned 1")),
        AnyOf(is_race, HasSubstr("no wgmma.fence")))
        << seed;
    // Of one unit alone, behind others that were waited for.
    EXPECT_THAT(launch.fault_of(replaced(
                    body, wait, "setp.eq.u32 %p6, %r4, 2;\n@%p6 bra OVER;\n" + wait + "OVER:\n")),
                is_race)
        << seed;
    EXPECT_THAT(launch.fault_of(without(without(body, "BROUGHT try"), "BROUGHT again")),
                AnyOf(is_race, HasSubstr("with nothing in between"), HasSubstr("waits for ever"),
                      HasSubstr("arrivals at the mbarrier")))
        << seed;
    EXPECT_THAT(
        launch.fault_of(without(without(body, "LEFT try"), "LEFT again")),
        AnyOf(is_race, HasSubstr("is brought over what"), HasSubstr("arrivals at the mbarrier")))
        << seed;
    // A warp that makes no products: none are over.
    EXPECT_THAT(launch.fault_of(replaced(body, "GROUP:\n",
                                         "GROUP:\nsetp.ge.u32 %p5, %r0, 96;\n@%p5 bra END;\n")),
                HasSubstr("waits for ever"))
        << seed;
  }
}

}  // namespace
}  // namespace fullbore::ptx
