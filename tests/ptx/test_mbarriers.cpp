// mbarriers: what they order, and what the machine refuses of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ptx/tensor_kernel.h"

namespace fullbore::ptx {
namespace {

using ::testing::HasSubstr;

// What a thread did before it arrives comes before what another does behind its wait, and no more than that.
TEST(PtxMbarriers, OrderMemory) {
  const std::string body =
      "setp.ne.u32 %p1, %r0, 0;\nsetp.eq.u32 %p2, %r0, 32;\n@%p1 bra READY;\n"
      "mbarrier.init.shared::cta.b64 [%r3], 1;\nREADY:\nbar.sync 0;\n@%p2 bra TELLER;\n@%p1 bra "
      "END;\n" +
      wait_for("WAIT", "%r3", "0") +
      "ld.shared.u32 %r5, [%r2];\nst.global.u32 [%l1], %r5;\nbra END;\nTELLER:\n"
      "mov.u32 %r4, 99;\nst.shared.u32 [%r2], %r4;\nmbarrier.arrive.shared::cta.b64 %l2, "
      "[%r3];\nEND:\n";
  const std::string arrival = "mbarrier.arrive.shared::cta.b64 %l2, [%r3];\n";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const TensorLaunch launch{.out_words = 1, .seed = seed};
    EXPECT_EQ(launch.run(body)[0], 99U);
    EXPECT_THAT(
        launch.fault_of(replaced(replaced(body, arrival, ""), "TELLER:\n", "TELLER:\n" + arrival)),
        HasSubstr("with nothing in between"));
    EXPECT_THAT(launch.fault_of(without(without(body, "WAIT try"), "WAIT again")),
                HasSubstr("with nothing in between"));
    EXPECT_THAT(launch.fault_of(replaced(body, "arrive.shared", "arrive.relaxed.cta.shared")),
                HasSubstr("is not known"));
  }
}

TEST(PtxMbarriers, WhatAnMbarrierIsNotIsRefused) {
  const TensorLaunch launch{.threads = 1};
  const auto fault_of = [&](const std::string& body) {
    return launch.fault_of("mbarrier.init.shared::cta.b64 [%r3], 2;\n" + body);
  };
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r3]";
  EXPECT_EQ(
      fault_of(arrive + ";\n" + arrive + ";\n" + arrive + ", 2;\n" + wait_for("W", "%r3", "1")),
      "none");
  EXPECT_THAT(fault_of(arrive + ", 3;\n"), HasSubstr("3 arrivals at the mbarrier"));
  EXPECT_THAT(fault_of("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n" + arrive +
                       ";\n" + arrive + ";\n"),
              HasSubstr("whose phase 0 lacks 0"));
  EXPECT_EQ(fault_of("mov.u32 %r4, 1048575;\n"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r4;\n"),
            "none");
  EXPECT_THAT(fault_of("mov.u32 %r4, 1048576;\n"
                       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r4;\n"),
              HasSubstr("more than 1048575 bytes"));
  EXPECT_THAT(fault_of("mbarrier.init.shared::cta.b64 [%r3+8], 0;\n"), HasSubstr("of 0 arrivals"));
  EXPECT_THAT(fault_of("mbarrier.init.shared::cta.b64 [%r3+8], 1048576;\n"),
              HasSubstr("of 1048576 arrivals"));
  EXPECT_THAT(fault_of("mbarrier.init.shared::cta.b64 [%r3+12], 1;\n"),
              HasSubstr("is no multiple of 8"));
  EXPECT_THAT(fault_of("mbarrier.init.shared::cta.b64 [%r3], 1;\n"), HasSubstr("is an mbarrier"));
  EXPECT_THAT(fault_of("mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"),
              HasSubstr("there is no mbarrier at 0x8"));
  EXPECT_THAT(fault_of(wait_for("W", "%r3+8", "0")), HasSubstr("there is no mbarrier at 0x8"));
  EXPECT_THAT(fault_of(wait_for("W", "%r3", "2")), HasSubstr("2 is no parity"));
  EXPECT_THAT(fault_of(wait_for("W", "%r3", "0")),
              HasSubstr("phase 0 of the mbarrier at 0x0 lacks 2 arrivals and 0 bytes"));
  EXPECT_THAT(fault_of("ld.shared.u32 %r4, [%r3+4];\n"), HasSubstr("is an mbarrier"));
  EXPECT_THAT(fault_of("st.shared.u8 [%r3+7], %r4;\n"), HasSubstr("is an mbarrier"));
  EXPECT_EQ(fault_of("st.shared.u8 [%r3+8], %r4;\n"), "none");
  EXPECT_THAT(fault_of("mapa.shared::cluster.u32 %r4, %r3, 1;\n"),
              HasSubstr("the cluster has no block 1"));
  EXPECT_THAT(fault_of("mapa.shared::cluster.u32 %r4, %r3, 0;\n" + wait_for("W", "%r4", "1")),
              HasSubstr("of another block"));
  EXPECT_THAT(fault_of("mapa.shared::cluster.u32 %r4, %r2, 0;\nst.shared.u32 [%r4], %r4;\n"),
              HasSubstr("are not within"));
}

}  // namespace
}  // namespace fullbore::ptx
