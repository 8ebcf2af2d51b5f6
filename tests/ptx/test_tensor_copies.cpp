// Copies of boxes of tensors: what comes where, and what the machine and the encoding of maps refuse.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ptx/tensor_kernel.h"
#include "tests/support/ptx/tensor_map.h"

namespace fullbore::ptx {
namespace {

using ::testing::HasSubstr;

/// One box at the coordinates, of which each thread writes 8 bytes out.
std::string copy_of_one(const std::array<int, 3>& at, int64_t bytes) {
  return fmt::format(
      "setp.ne.u32 %p1, %r0, 0;\nmov.u32 %r4, {};\nmov.u32 %r5, {};\nmov.u32 %r6, {};\n"
      "@%p1 bra READY;\nmbarrier.init.shared::cta.b64 [%r3], 1;\n"
      "fence.mbarrier_init.release.cluster;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {};\n"
      "prefetch.tensormap [%l0];\n{} [%r2], [%l0, {{%r4, %r5, %r6}}], [%r3];\nREADY:\n"
      "bar.sync 0;\n{}"
      "shl.b32 %r7, %r0, 3;\nadd.u32 %r8, %r2, %r7;\nld.shared.u64 %l2, [%r8];\n"
      "cvt.u64.u32 %l3, %r7;\nadd.u64 %l3, %l1, %l3;\nst.global.u64 [%l3], %l2;\n",
      at[0], at[1], at[2], bytes, kCopy3d, wait_for("FULL", "%r3", "0"));
}

/// The box as the formula of swizzles has it.
std::vector<uint16_t> expected_box(const TensorOf16& of, const std::array<int, 3>& at) {
  const size_t width = of.box[0], rows = of.box[1] * of.box[2];
  std::vector<uint16_t> expected(width * rows);
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < width; ++i) {
      const size_t byte = (row * width + i) * 2, of_128 = byte / 128, chunk = byte / 16 % 8;
      const size_t moved = of.swizzle == 3   ? chunk ^ of_128 % 8
                           : of.swizzle == 2 ? chunk ^ of_128 % 4
                           : of.swizzle == 1 ? chunk ^ of_128 % 2
                                             : chunk;
      expected[(of_128 * 128 + moved * 16 + byte % 16) / 2] =
          of.at(at[0] + static_cast<int64_t>(i), at[1] + static_cast<int64_t>(row % of.box[1]),
                at[2] + static_cast<int64_t>(row / of.box[1]));
    }
  return expected;
}

void expect_box(const TensorOf16& of, const std::array<int, 3>& at) {
  const int64_t bytes = 2 * int64_t{of.box[0]} * of.box[1] * of.box[2];
  for (const uint64_t seed : {1, 2, 3}) {
    const TensorLaunch launch{.tensor = of,
                              .threads = static_cast<uint32_t>(bytes / 8),
                              .out_words = bytes / 4,
                              .seed = seed,
                              .is_map_global = seed == 3};
    const std::vector<uint32_t> words = launch.run(copy_of_one(at, bytes));
    const auto* const halves = reinterpret_cast<const uint16_t*>(words.data());
    EXPECT_EQ(std::vector<uint16_t>(halves, halves + 2 * words.size()), expected_box(of, at))
        << at[0] << " " << at[1] << " " << at[2] << ", swizzle " << of.swizzle;
  }
}

TEST(PtxTensorCopies, BoxesComeSwizzled) {
  for (const uint32_t swizzle : {0U, 1U, 2U, 3U}) {
    const uint32_t width = swizzle == 0 ? 24 : 8U << swizzle;
    TensorOf16 of{.extents = {72, 20, 3}, .swizzle = static_cast<int>(swizzle)};
    of.box = {width, 16, 2};
    expect_box(of, {0, 0, 0});
    expect_box(of, {8, 3, 1});
  }
}

TEST(PtxTensorCopies, WhatIsOutsideIsZero) {
  const TensorOf16 of{.extents = {72, 20, 3}, .box = {64, 8, 2}};
  for (const std::array<int, 3>& at : {std::array{16, 0, 0},
                                       {-8, 0, 0},
                                       {0, 15, 1},
                                       {0, -3, 0},
                                       {0, 0, 2},
                                       {0, 0, -1},
                                       {70, 19, 2},
                                       {72, 0, 0},
                                       {0, 20, 0},
                                       {-64, -8, -2},
                                       {-5, 18, 2}})
    expect_box(of, at);
  // NaN, where the map says so.
  const TensorOf16 nan{.extents = {72, 20, 3}, .dtype = 9, .fill = 1};
  const TensorLaunch launch{.tensor = nan, .threads = 128, .out_words = 256};
  EXPECT_EQ(launch.run(copy_of_one({72, 0, 0}, 1024))[3], 0x7fff7fffU);
}

TEST(PtxTensorCopies, WhatACardWouldNotDoIsRefused) {
  const std::string body = copy_of_one({0, 0, 0}, 1024);
  const TensorLaunch launch{.threads = 128};
  ASSERT_EQ(launch.fault_of(body), "none");
  const auto faults = [&](const std::string& what, const std::string& by, const char* expected) {
    EXPECT_THAT(launch.fault_of(replaced(body, what, by)), HasSubstr(expected)) << by;
  };
  const std::string copy = fmt::format("{} [%r2]", kCopy3d), init = "mbarrier.init";
  faults(copy, fmt::format("{} [%r2+512]", kCopy3d), "is no multiple of 1024");
  faults(copy, fmt::format("{} [%r2+8192]", kCopy3d), "is not within the 9216 bytes");
  faults("[%l0, {%r4", "[%l0+8, {%r4", "is no multiple of 64");
  faults("[%l0, {%r4", "[%l1, {%r4", "there is no tensor map at 0x7");
  faults("[%l0, {%r4", "[%l0+64, {%r4", "are not within the 144 bytes of parameters");
  faults("prefetch.tensormap", "cvt.u64.u32 %l0, %r2;\ncvta.shared.u64 %l0, %l0;\nprefetch",
         "in neither parameters nor global memory");
  faults("{%r4, %r5, %r6}", "{%r4, %r5}", "is not known");
  faults("], [%r3];", "], [%r3+8];", "an offset of a third address");
  EXPECT_THAT(
      launch.fault_of(replaced(replaced(body, ".3d", ".2d"), "{%r4, %r5, %r6}", "{%r4, %r5}")),
      HasSubstr("2 coordinates of a tensor of 3 dimensions"));
  EXPECT_THAT(launch.fault_of(replaced(replaced(body, "::bytes [", "::bytes.multicast::cluster ["),
                                       "], [%r3];", "], [%r3], 2;")),
              HasSubstr("blocks 0b10 of a cluster of 1"));
  EXPECT_THAT(launch.fault_of(without(body, "fence.mbarrier_init")),
              HasSubstr("there is no fence behind its mbarrier.init"));
  EXPECT_EQ(launch.fault_of(replaced(body, "fence.mbarrier_init.release.cluster",
                                     "fence.proxy.async.shared::cta")),
            "none");
  faults(copy, fmt::format("{0} [%r2], [%l0, {{%r4, %r5, %r6}}], [%r3];\n{0} [%r2]", kCopy3d),
         "is brought over what another copy brings");
  faults(copy, fmt::format("st.shared.u32 [%r2+64], %r0;\n{} [%r2]", kCopy3d),
         "thread 0 has made no fence.proxy.async since it wrote");
  faults(copy,
         fmt::format("st.shared.u32 [%r2+64], %r0;\nfence.mbarrier_init.release.cluster;\n{} [%r2]",
                     kCopy3d),
         "thread 0 has made no fence.proxy.async since it wrote");
  EXPECT_EQ(
      launch.fault_of(replaced(
          body, copy,
          fmt::format("st.shared.u32 [%r2+64], %r0;\nfence.proxy.async;\n{} [%r2]", kCopy3d))),
      "none");
  // Without a barrier between what another thread wrote, and has shown, and the copy.
  EXPECT_THAT(launch.fault_of("setp.ne.u32 %p3, %r0, 5;\n@%p3 bra LATER;\nst.shared.u32 [%r2], "
                              "%r0;\nfence.proxy.async;\nLATER:\n" +
                              body),
              HasSubstr("with nothing in between"));
  EXPECT_THAT(launch.fault_of(replaced(
                  replaced(body, "init.shared::cta.b64 [%r3], 1", "init.shared::cta.b64 [%r2], 1"),
                  "_, [%r3]", "_, [%r2]")),
              HasSubstr("there is no mbarrier at"));
  const std::string over = replaced(
      replaced(body, "mbarrier.init", "mbarrier.init.shared::cta.b64 [%r2+256], 1;\nmbarrier.init"),
      "prefetch", "prefetch");
  EXPECT_THAT(launch.fault_of(over), HasSubstr("is brought over an mbarrier"));
}

TEST(PtxTensorCopies, BoxesBeyondSharedMemoryAreRefused) {
  for (const auto& [outer, expected] :
       {std::pair{256U, "a box of 8388608 bytes, of 232448 at most"},
        {2U, "a box of 65536 bytes at 0x400 of block 0 is not within the 9216 bytes"}}) {
    const TensorLaunch launch{.tensor = {.box = {64, 256, outer}}, .threads = 128};
    EXPECT_THAT(launch.fault_of(copy_of_one({0, 0, 0}, 1024)), HasSubstr(expected));
  }
}

TEST(PtxTensorCopies, EachWaitAndOrderIsMissed) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const TensorLaunch launch{.threads = 128, .seed = seed};
    const std::string body = copy_of_one({0, 0, 0}, 1024);
    ASSERT_EQ(launch.fault_of(body), "none") << seed;
    const std::string unwaited = without(without(body, "// FULL again"), "mbarrier.try_wait");
    // Whether the box is there or not.
    EXPECT_THAT(launch.fault_of(unwaited),
                ::testing::AnyOf(HasSubstr("awaits a box of a tensor"),
                                 HasSubstr("a box for an mbarrier of block 0 has written with "
                                           "nothing in between")))
        << seed;
    EXPECT_THAT(launch.fault_of(replaced(body, "[%r3], 1024", "[%r3], 1008")),
                HasSubstr("lacks 0 arrivals and -16 bytes"));
    EXPECT_THAT(
        launch.fault_of(replaced(body, "[%r3], 1024", "[%r3], 1040")),
        HasSubstr("waits for ever: phase 0 of the mbarrier at 0x0 lacks 0 arrivals and 16"));
    EXPECT_THAT(
        launch.fault_of(without(body, "bar.sync")),
        ::testing::AnyOf(HasSubstr("there is no mbarrier"),
                         HasSubstr("was made by thread 0 of block 0 with nothing in between")));
    // Nobody waits, and the block ends.
    const std::string ends = body.substr(0, body.find("bar.sync"));
    EXPECT_THAT(launch.fault_of(ends),
                ::testing::AnyOf(HasSubstr("it ends with a box of a tensor on its way to it"),
                                 HasSubstr("it ends, and has not waited for what was brought")))
        << seed;
  }
}

// A wait may end before its phase: who does not look is met at one time or another.
TEST(PtxTensorCopies, WaitsTimeOut) {
  const std::string body = without(copy_of_one({0, 0, 0}, 1024), "@!over");
  int met = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed)
    met += TensorLaunch{.threads = 128, .seed = seed}.fault_of(body) != "none" ? 1 : 0;
  EXPECT_GT(met, 5);
}

TEST(PtxTensorCopies, MapsOfWhatTheDriverDocumentsAreEncoded) {
  struct Asked {
    int dtype = 9;
    unsigned rank = 3;
    uint64_t address = 0x7000'0000'0010;
    std::array<uint64_t, 5> extents = {72, 20, 3, 1, 1};
    std::array<uint64_t, 4> strides = {160, 3200, 9600, 9600};
    std::array<uint32_t, 5> box = {64, 256, 1, 1, 1}, steps = {1, 1, 1, 1, 1};
    int interleave = 0, swizzle = 3, promotion = 3, fill = 0;
    size_t misaligned = 0;
    alignas(64) std::array<std::byte, 256> map{};

    int encode() {
      return encode_tensor_map(map.data() + misaligned, dtype, rank,
                               reinterpret_cast<void*>(address), extents.data(), strides.data(),
                               box.data(), steps.data(), interleave, swizzle, promotion, fill);
    }
  };
  Asked good;
  ASSERT_EQ(good.encode(), 0);
  const auto map = decode_tensor_map({good.map.data(), kTensorMapBytes});
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->address, good.address);
  EXPECT_EQ(map->strides, (std::array<uint64_t, 5>{2, 160, 3200, 0, 0}));
  EXPECT_EQ(map->box_bytes(), 64 * 256 * 2);
  for (size_t byte = 0; byte < kTensorMapBytes; ++byte) {
    Asked changed = good;
    changed.map[byte] ^= std::byte{1};
    EXPECT_FALSE(decode_tensor_map({changed.map.data(), kTensorMapBytes}).has_value()) << byte;
  }
  const auto refused = [](const char* what, const auto& change) {
    Asked asked;
    change(asked);
    EXPECT_EQ(asked.encode(), 1) << what;
    EXPECT_FALSE(decode_tensor_map({asked.map.data(), kTensorMapBytes}).has_value()) << what;
  };
  const auto taken = [](const char* what, const auto& change) {
    Asked asked;
    change(asked);
    EXPECT_EQ(asked.encode(), 0) << what;
  };
  refused("map", [](Asked& a) { a.misaligned = 32; });
  taken("map", [](Asked& a) { a.misaligned = 64; });
  refused("dtype", [](Asked& a) { a.dtype = 7; });
  refused("rank 0", [](Asked& a) { a.rank = 0; });
  refused("rank 6", [](Asked& a) { a.rank = 6; });
  taken("rank 5", [](Asked& a) { a.rank = 5; });
  taken("rank 1", [](Asked& a) { a.rank = 1; });
  refused("address", [](Asked& a) { a.address += 8; });
  refused("extent 0", [](Asked& a) { a.extents[1] = 0; });
  refused("extent", [](Asked& a) { a.extents[2] = (uint64_t{1} << 32) + 1; });
  taken("extent", [](Asked& a) { a.extents[2] = uint64_t{1} << 32; });
  refused("stride of 8", [](Asked& a) { a.strides[0] = 168; });
  refused("stride of less", [](Asked& a) { a.strides[0] = 128; });
  refused("stride of fewer rows", [](Asked& a) { a.strides[1] = 3184; });
  refused("stride", [](Asked& a) { a.strides[1] = uint64_t{1} << 40; });
  taken("stride", [](Asked& a) { a.strides[1] = (uint64_t{1} << 40) - 16; });
  refused("box 0", [](Asked& a) { a.box[2] = 0; });
  refused("box 257", [](Asked& a) { a.box[1] = 257; });
  refused("inner box", [](Asked& a) { a.box[0] = 60; });
  refused("swizzled box", [](Asked& a) { a.box[0] = 72; });
  taken("unswizzled box", [](Asked& a) { a.box[0] = 72, a.swizzle = 0; });
  refused("swizzle 64", [](Asked& a) { a.swizzle = 2; });
  refused("swizzle", [](Asked& a) { a.swizzle = 4; });
  refused("steps", [](Asked& a) { a.steps[0] = 2; });
  refused("interleave", [](Asked& a) { a.interleave = 1; });
  refused("promotion", [](Asked& a) { a.promotion = 4; });
  refused("fill", [](Asked& a) { a.fill = 2; });
  taken("fill", [](Asked& a) { a.fill = 1; });
  refused("NaN of integers", [](Asked& a) { a.fill = 1, a.dtype = 1; });
}

}  // namespace
}  // namespace fullbore::ptx
