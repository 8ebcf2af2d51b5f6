// Clusters: rings of stages between a thread that has boxes brought and those that read them, of one block
// and of two, with each of their waits, arrivals and barriers removed in turn.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ptx/tensor_kernel.h"
#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// The body without the wait of that label.
std::string unwaited(const std::string& body, const std::string& label) {
  return without(without(body, "// " + label + " try"), "// " + label + " again");
}

constexpr int kUnits = 6;
constexpr uint64_t kSeeds = 12;

/// Before the units: the barriers of two stages, "brought" at %r3 and "left" 16 bytes behind it.
std::string begin_ring(int left_by, const std::string& barrier) {
  return fmt::format(
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra READY;\n"
      "mbarrier.init.shared::cta.b64 [%r3], 1;\nmbarrier.init.shared::cta.b64 [%r3+8], 1;\n"
      "mbarrier.init.shared::cta.b64 [%r3+16], {0};\nmbarrier.init.shared::cta.b64 [%r3+24], {0};\n"
      "fence.mbarrier_init.release.cluster;\nREADY:\n{1}",
      left_by, barrier);
}

/// Of unit %r4: stage %r5, parity %r6, its contrary %r7, mbarrier %r9, place %r10.
std::string stage(int bytes) {
  return fmt::format(
      "and.b32 %r5, %r4, 1;\nbfe.u32 %r6, %r4, 1, 1;\nxor.b32 %r7, %r6, 1;\nshl.b32 %r8, %r5, 3;\n"
      "add.u32 %r9, %r3, %r8;\nmad.lo.u32 %r10, %r5, {}, %r2;\n",
      bytes);
}
std::string next_unit(const std::string& label) {
  return fmt::format("add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, {};\n@%p3 bra {};\n", kUnits,
                     label);
}

/// Thread 0 has boxes of 8 rows brought; the 32 of the second warp add up a word each.
std::string ring() {
  return begin_ring(32, "bar.sync 0;\n") +
         "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra TAKERS;\n"
         "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra END;\nmov.u32 %r4, 0;\nmov.u32 %r12, 0;\nBRING:\n" +
         stage(1024) + wait_for("LEFT", "%r9+16", "%r7") +
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 1024;\nshl.b32 %r11, %r4, 3;\n" +
         kCopy3d + " [%r10], [%l0, {%r12, %r11, %r12}], [%r9];\n" + next_unit("BRING") +
         "bra END;\nTAKERS:\nmov.u32 %r4, 0;\nmov.u32 %r20, 0;\nsub.u32 %r13, %r0, 32;\n"
         "shl.b32 %r14, %r13, 2;\nTAKE:\n" +
         stage(1024) + wait_for("BROUGHT", "%r9", "%r6") +
         "add.u32 %r15, %r10, %r14;\nld.shared.u32 %r16, [%r15];\nadd.u32 %r20, %r20, %r16;\n"
         "mbarrier.arrive.shared::cta.b64 _, [%r9+16];\n" +
         next_unit("TAKE") +
         "cvt.u64.u32 %l2, %r14;\nadd.u64 %l2, %l1, %l2;\nst.global.u32 [%l2], %r20;\nEND:\n";
}

/// What taker `lane` adds up: of row 0, where the swizzle changes nothing.
uint32_t sum_of(const TensorOf16& of, int64_t lane, int64_t rows_a_unit) {
  uint32_t sum = 0;
  for (int unit = 0; unit < kUnits; ++unit)
    sum += of.at(2 * lane, rows_a_unit * unit, 0) +
           (uint32_t{of.at(2 * lane + 1, rows_a_unit * unit, 0)} << 16);
  return sum;
}

TEST(PtxClusters, ARingOfStagesPassesBoxesOn) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const TensorLaunch launch{.out_words = 32, .seed = seed};
    const std::vector<uint32_t> sums = launch.run(ring());
    for (size_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(sums[lane], sum_of(launch.tensor, static_cast<int64_t>(lane), 8)) << lane;
  }
}

// Whatever the order: races are told by what threads know, not by who came first.
TEST(PtxClusters, EachWaitAndArrivalOfARingIsMissed) {
  const std::string body = ring();
  const auto lacks = HasSubstr("waits for ever: phase ");
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const TensorLaunch launch{.out_words = 32, .seed = seed};
    EXPECT_THAT(launch.fault_of(unwaited(body, "LEFT")),
                AnyOf(HasSubstr("is brought over what"), HasSubstr("arrivals at the mbarrier")))
        << seed;
    EXPECT_THAT(launch.fault_of(unwaited(body, "BROUGHT")),
                AnyOf(HasSubstr("awaits a box of a tensor"), HasSubstr("with nothing in between"),
                      HasSubstr("arrivals at the mbarrier"), lacks))
        << seed;
    EXPECT_THAT(launch.fault_of(without(body, "arrive.shared::cta")), lacks);
    EXPECT_THAT(launch.fault_of(without(body, "arrive.expect_tx")), lacks);
    EXPECT_THAT(launch.fault_of(replaced(body, "[%r3+16], 32", "[%r3+16], 33")), lacks);
    EXPECT_THAT(launch.fault_of(replaced(body, "[%r3+24], 32", "[%r3+24], 31")),
                AnyOf(HasSubstr("with nothing in between"), HasSubstr("arrivals at the mbarrier")));
    EXPECT_THAT(launch.fault_of(without(body, "bar.sync")),
                AnyOf(HasSubstr("there is no mbarrier"), HasSubstr("was made by thread 0")));
    // Takers leave the stage before they have read it.
    const std::string arrival = "mbarrier.arrive.shared::cta.b64 _, [%r9+16];\n";
    EXPECT_THAT(launch.fault_of(replaced(replaced(body, arrival, ""), "add.u32 %r15",
                                         arrival + "add.u32 %r15")),
                AnyOf(HasSubstr("awaits a box of a tensor"), HasSubstr("with nothing in between")))
        << seed;
  }
}

/// Each of two blocks brings half of a stage to both, and its 32 takers add up a word of each half.
std::string pair() {
  return begin_ring(64,
                    "barrier.cluster.arrive.release.aligned; // begin\n"
                    "barrier.cluster.wait.acquire.aligned; // begin\n") +
         "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra TAKERS;\n"
         "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra END;\nmov.u32 %r4, 0;\nmov.u32 %r12, 0;\n"
         "mov.u16 %h1, 3;\nBRING:\n" +
         stage(2048) + wait_for("LEFT", "%r9+16", "%r7") +
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 2048;\n"
         "mad.lo.u32 %r11, %r4, 16, 0;\nmad.lo.u32 %r11, %r1, 8, %r11;\n"
         "mad.lo.u32 %r10, %r1, 1024, %r10;\n" +
         kCopy3d + ".multicast::cluster [%r10], [%l0, {%r12, %r11, %r12}], [%r9], %h1;\n" +
         next_unit("BRING") +
         "bra END;\nTAKERS:\nmov.u32 %r4, 0;\nmov.u32 %r20, 0;\nmov.u32 %r21, 0;\n"
         "sub.u32 %r13, %r0, 32;\nshl.b32 %r14, %r13, 2;\nTAKE:\n" +
         stage(2048) + wait_for("BROUGHT", "%r9", "%r6") +
         "add.u32 %r15, %r10, %r14;\nld.shared.u32 %r16, [%r15];\nadd.u32 %r20, %r20, %r16;\n"
         "ld.shared.u32 %r16, [%r15+1024];\nadd.u32 %r21, %r21, %r16;\n"
         "add.u32 %r17, %r9, 16;\n"
         "mapa.shared::cluster.u32 %r18, %r17, 0;\n"
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18]; // first\n"
         "mapa.shared::cluster.u32 %r18, %r17, 1;\n"
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r18]; // second\n" +
         next_unit("TAKE") +
         "mad.lo.u32 %r22, %r1, 32, %r13;\nmul.wide.u32 %l2, %r22, 8;\nadd.u64 %l2, %l1, %l2;\n"
         "st.global.v2.u32 [%l2], {%r20, %r21};\nEND:\n"
         "barrier.cluster.arrive.release; // end\nbarrier.cluster.wait.acquire; // end\n";
}

TensorLaunch pair_launch(uint64_t seed) {
  TensorLaunch launch{.cluster = 2, .out_words = 128, .seed = seed};
  launch.tensor.extents = {64, 96, 1};
  return launch;
}

TEST(PtxClusters, BlocksOfAPairBringBoxesForEachOther) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const TensorLaunch launch = pair_launch(seed);
    const std::vector<uint32_t> sums = launch.run(pair());
    for (size_t block = 0; block < 2; ++block)
      for (size_t lane = 0; lane < 32; ++lane) {
        uint32_t half = 0;
        for (int unit = 0; unit < kUnits; ++unit) {
          const auto column = static_cast<int64_t>(2 * lane);
          half += launch.tensor.at(column, 16 * unit + 8, 0) +
                  (uint32_t{launch.tensor.at(column + 1, 16 * unit + 8, 0)} << 16);
        }
        const uint32_t* const own = sums.data() + 64 * block + 2 * lane;
        EXPECT_EQ(own[0], sum_of(launch.tensor, static_cast<int64_t>(lane), 16)) << block;
        EXPECT_EQ(own[1], half) << block;
      }
  }
}

TEST(PtxClusters, EachWaitArrivalAndBarrierOfAPairIsMissed) {
  const std::string body = pair();
  const auto lacks = HasSubstr("waits for ever: phase ");
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const TensorLaunch launch = pair_launch(seed);
    const auto fault_of = [&](const std::string& text) { return launch.fault_of(text); };
    // At the end: what takers tell the other block may come when that has gone.
    EXPECT_THAT(fault_of(without(without(body, "arrive.release; // end"), "wait.acquire; // end")),
                AnyOf(HasSubstr("which has ended"), HasSubstr("it ends, and cannot know whether")))
        << seed;
    // At the beginning: the block alone knows its mbarriers.
    EXPECT_THAT(fault_of(replaced(without(body, "arrive.release.aligned; // begin"),
                                  "barrier.cluster.wait.acquire.aligned; // begin", "bar.sync 0;")),
                AnyOf(HasSubstr("there is no mbarrier"), HasSubstr("was made by thread 0")))
        << seed;
    EXPECT_THAT(fault_of(without(body, "// first")), lacks);
    EXPECT_THAT(fault_of(without(body, "// second")), lacks);
    EXPECT_THAT(fault_of(replaced(body, "%h1, 3;", "%h1, 1;")),
                AnyOf(lacks, HasSubstr("is brought over")));
    EXPECT_THAT(fault_of(replaced(body, "%h1, 3;", "%h1, 2;")),
                AnyOf(lacks, HasSubstr("is brought over")));
    EXPECT_THAT(fault_of(replaced(body, "%h1, 3;", "%h1, 7;")),
                HasSubstr("blocks 0b111 of a cluster of 2"));
    EXPECT_THAT(fault_of(replaced(body, "_, [%r9], 2048", "_, [%r9], 1024")),
                AnyOf(lacks, HasSubstr("with nothing in between"), HasSubstr("awaits a box")));
    EXPECT_THAT(fault_of(unwaited(body, "LEFT")),
                AnyOf(HasSubstr("is brought over what"), HasSubstr("arrivals at the mbarrier")))
        << seed;
    EXPECT_THAT(fault_of(unwaited(body, "BROUGHT")),
                AnyOf(HasSubstr("awaits a box of a tensor"), HasSubstr("with nothing in between"),
                      HasSubstr("arrivals at the mbarrier"), lacks))
        << seed;
    // Takers of a block wait for its own boxes alone: the other's is brought over what they read.
    EXPECT_THAT(
        fault_of(replaced(replaced(without(body, "// second"), "[%r3+16], 64", "[%r3+16], 32"),
                          "[%r3+24], 64", "[%r3+24], 32")),
        AnyOf(lacks, HasSubstr("is brought over what"), HasSubstr("arrivals at the mbarrier")));
  }
}

TEST(PtxClusters, BarriersOfAClusterOrderMemory) {
  // A block writes, and the other reads.
  const std::string body =
      "setp.ne.u32 %p1, %r0, 0;\nsetp.ne.u32 %p2, %r1, 0;\nor.pred %p3, %p1, %p2;\n@%p3 bra A;\n"
      "mov.u32 %r4, 77;\nst.global.u32 [%l1], %r4;\nA:\n"
      "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
      "xor.b32 %r5, %r1, 1;\nor.b32 %r5, %r5, %r0;\nsetp.ne.u32 %p4, %r5, 0;\n@%p4 bra B;\n"
      "ld.global.u32 %r6, [%l1];\nst.global.u32 [%l1+4], %r6;\nB:\n";
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    TensorLaunch launch{.cluster = 2, .out_words = 2, .seed = seed};
    EXPECT_EQ(launch.run(body)[1], 77U);
    EXPECT_THAT(launch.fault_of(without(without(body, "arrive.release"), "wait.acquire")),
                HasSubstr("with nothing in between"));
    EXPECT_THAT(launch.fault_of(without(body, "arrive.release")), HasSubstr("has not arrived"));
    EXPECT_THAT(launch.fault_of(without(body, "wait.acquire")),
                HasSubstr("with nothing in between"));
    EXPECT_THAT(launch.fault_of(replaced(body, "A:", "A:\nbarrier.cluster.arrive;")),
                HasSubstr("has not waited since the last time"));
    // Threads that have ended are not waited for.
    EXPECT_EQ(launch.fault_of("setp.ge.u32 %p5, %r0, 32;\n@%p5 bra GONE;\n" + body + "GONE:\n"),
              "none");
    launch.cluster = 1;
    EXPECT_EQ(launch.fault_of("barrier.cluster.arrive.release.aligned;\n"
                              "barrier.cluster.wait.acquire.aligned;\n"),
              "none");
    // Of a warp that does not come together.
    EXPECT_THAT(launch.fault_of("setp.eq.u32 %p1, %r0, 3;\n@%p1 bra OUT;\n"
                                "barrier.cluster.arrive.release.aligned;\nOUT:\n"),
                HasSubstr("waits for lane 3, which has ended"));
  }
}

// A block may have ended when it is sent something that it does not wait for: it has, or it ends too early.
TEST(PtxClusters, NothingIsSentToABlockThatMayHaveEnded) {
  const std::string begin =
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra READY;\nmbarrier.init.shared::cta.b64 [%r3], 1;\n"
      "fence.mbarrier_init.release.cluster;\nREADY:\n"
      "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
      "setp.ne.u32 %p2, %r1, 0;\nor.pred %p3, %p1, %p2;\n@%p3 bra END;\n";
  const std::string arrival =
      begin +
      "mapa.shared::cluster.u32 %r4, %r3, 1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\nEND:\n";
  const std::string box = begin + "mov.u16 %h1, 2;\nmov.u32 %r4, 0;\n" + kCopy3d +
                          ".multicast::cluster [%r2], [%l0, {%r4, %r4, %r4}], [%r3], %h1;\nEND:\n";
  const std::string end = "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n";
  bool had_ended = false, ends = false;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const TensorLaunch launch{.threads = 1, .cluster = 2, .seed = seed};
    const std::string told = launch.fault_of(arrival);
    had_ended |= told.find("is of block 1, which has ended") != std::string::npos;
    ends |=
        told.find("block 1: it ends, and cannot know whether thread 0 of block 0 has arrived") !=
        std::string::npos;
    EXPECT_NE(told, "none") << seed;
    EXPECT_EQ(launch.fault_of(arrival + end), "none") << seed;
    EXPECT_THAT(launch.fault_of(box),
                AnyOf(HasSubstr("a box for block 1, which has ended"),
                      HasSubstr("it ends with a box of a tensor on its way to it"),
                      HasSubstr("it ends, and has not waited for what was brought")))
        << seed;
    // Behind the barrier the box may still be on its way.
    EXPECT_THAT(launch.fault_of(box + end),
                AnyOf(HasSubstr("it ends with a box of a tensor on its way to it"),
                      HasSubstr("it ends, and has not waited for what was brought")))
        << seed;
  }
  EXPECT_TRUE(had_ended);
  EXPECT_TRUE(ends);
}

TEST(PtxClusters, ClustersAndRegistersAreAsTheyMayBe) {
  const TensorLaunch launch{};
  for (const char* good : {"inc.sync.aligned.u32 232", "dec.sync.aligned.u32 24"})
    EXPECT_EQ(launch.fault_of(fmt::format("setmaxnreg.{};\n", good)), "none");
  for (const char* bad : {"16", "42", "264"})
    EXPECT_THAT(launch.fault_of(fmt::format("setmaxnreg.inc.sync.aligned.u32 {};\n", bad)),
                HasSubstr("no multiple of 8"));
  const TensorLaunch two{.cluster = 2};
  const std::string text = two.text("");
  EXPECT_EQ(parse(text).kernels.at("k").cluster, 2U);
  EXPECT_THROW(parse(without(text, ".reqnctapercluster")), Fault);
  EXPECT_EQ(parse(without(text, ".explicitcluster")).kernels.at("k").cluster, 2U);
  EXPECT_THROW(parse(replaced(text, "reqnctapercluster 2, 1", "reqnctapercluster 2, 2")), Fault);
  EXPECT_THROW(parse(replaced(text, "reqnctapercluster 2", "reqnctapercluster 16")), Fault);
  const Module module = parse(text);
  DeviceMemory memory;
  Launch launched{
      .kernel = &module.kernels.at("k"), .grid = {3, 2}, .parameters = std::vector<std::byte>(144)};
  EXPECT_THROW(run(launched, memory), Fault);
  launched.grid = {4, 3};
  EXPECT_GT(run(launched, memory).instructions, 0);
}

}  // namespace
}  // namespace fullbore::ptx
