// Conversions to 8-bit floats and products of them, by their definitions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {
namespace {

/// Runs a body of a warp that reads 16 words of each lane at [%l3] and writes 4 words of it at [%l5].
std::vector<uint32_t> run_warp(const std::string& body, const std::vector<uint32_t>& in) {
  const Module module = parse(
      ".version 8.4\n.target sm_89\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
      ".reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %l<8>;\n"
      "ld.param.u64 %l0, [out];\nld.param.u64 %l1, [in];\nmov.u32 %r0, %tid.x;\n"
      "mul.wide.u32 %l2, %r0, 64;\nadd.s64 %l3, %l1, %l2;\n"
      "mul.wide.u32 %l4, %r0, 16;\nadd.s64 %l5, %l0, %l4;\n" +
      body + "ret;\n}\n");
  DeviceMemory memory;
  const auto bytes = static_cast<int64_t>(4 * in.size());
  constexpr int64_t kOut = 32 * 16;
  const uint64_t out = memory.allocate(kOut), from = memory.allocate(bytes);
  std::memcpy(memory.at(from, bytes).data(), in.data(), static_cast<size_t>(bytes));
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &out, 8);
  std::memcpy(parameters.data() + 8, &from, 8);
  run({.kernel = &module.kernels.at("k"),
       .grid = {1},
       .block = {32},
       .dynamic_shared_bytes = 0,
       .parameters = parameters,
       .seed = 1},
      memory, 10'000);
  std::vector<uint32_t> result(kOut / 4);
  std::memcpy(result.data(), memory.at(out, kOut).data(), kOut);
  return result;
}

/// The code of the upper and of the lower half.
std::pair<int, int> converted(const std::string& type, float upper, float lower) {
  std::vector<uint32_t> in(32 * 16);
  in[0] = std::bit_cast<uint32_t>(upper), in[1] = std::bit_cast<uint32_t>(lower);
  const uint32_t pair =
      run_warp("ld.global.f32 %f0, [%l3];\nld.global.f32 %f1, [%l3+4];\ncvt.rn.satfinite." + type +
                   "x2.f32 %h0, %f0, %f1;\ncvt.u32.u16 %r1, %h0;\nst.global.u32 [%l5], %r1;\n",
               in)[0];
  EXPECT_EQ(pair >> 16, 0U);
  return {static_cast<int>(pair >> 8 & 0xff), static_cast<int>(pair & 0xff)};
}

TEST(PtxFp8, Converts) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(converted("e4m3", 1, -1), std::pair(0x38, 0xb8));
  EXPECT_EQ(converted("e4m3", 448, 1e9F), std::pair(0x7e, 0x7e));
  EXPECT_EQ(converted("e4m3", inf, -inf), std::pair(0x7e, 0xfe));
  EXPECT_EQ(converted("e4m3", nan, 0), std::pair(0x7f, 0));
  EXPECT_EQ(converted("e4m3", 17, 19), std::pair(0x58, 0x5a)) << "16 and 20: even";
  EXPECT_EQ(converted("e4m3", 0x1p-9F, 0x1p-10F), std::pair(1, 0));
  EXPECT_EQ(converted("e5m2", 1, -1), std::pair(0x3c, 0xbc));
  EXPECT_EQ(converted("e5m2", 57344, inf), std::pair(0x7b, 0x7b));
  EXPECT_EQ(converted("e5m2", nan, -0.0F), std::pair(0x7f, 0x80));
  EXPECT_EQ(converted("e5m2", 9, 11), std::pair(0x48, 0x4a)) << "8 and 12: even";
  EXPECT_THROW(run_warp("cvt.rn.e4m3x2.f32 %h0, %f0, %f1;\n", std::vector<uint32_t>(512)), Fault)
      << "without satfinite there is none";
}

// Codes of small whole numbers, by their fields: e4m3 has a bias of 7 and e5m2 of 15.
uint32_t code_of(int number, bool is_e5m2) {
  if (number == 0) return 0;
  const int exponent = std::ilogb(std::abs(number));
  const int bits = is_e5m2 ? 2 : 3, bias = is_e5m2 ? 15 : 7;
  const int fraction = static_cast<int>((std::abs(number) / std::exp2(exponent) - 1) * (1 << bits));
  return static_cast<uint32_t>((number < 0 ? 0x80 : 0) | (exponent + bias) << bits | fraction);
}

TEST(PtxFp8, Multiplies) {
  constexpr int kNumbers[] = {0, 1, -2, 3, 4, -6, 2, -1, 5, -3, -4};
  const auto a_at = [&](int row, int k) { return kNumbers[(row * 5 + k * 3 + k / 7) % 8]; };
  const auto b_at = [&](int k, int column) { return kNumbers[(column * 7 + k * 2 + k / 5) % 8]; };
  for (const bool a_is_e5m2 : {false, true})
    for (const bool b_is_e5m2 : {false, true}) {
      std::vector<uint32_t> in(32 * 16);
      for (int lane = 0; lane < 32; ++lane)
        for (int byte = 0; byte < 4; ++byte) {
          uint32_t* const own = in.data() + ptrdiff_t{16} * lane;
          const int group = lane / 4, k = 4 * (lane % 4) + byte;
          for (int word = 0; word < 4; ++word)
            own[word] |= code_of(a_at(group + word % 2 * 8, k + word / 2 * 16), a_is_e5m2)
                         << (8 * byte);
          for (int word = 0; word < 2; ++word)
            own[4 + word] |= code_of(b_at(k + word * 16, group), b_is_e5m2) << (8 * byte);
          for (int part = 0; part < 4; ++part)
            own[8 + part] = std::bit_cast<uint32_t>(static_cast<float>(100 * lane + part));
        }
      const std::vector<uint32_t> out = run_warp(
          fmt::format("ld.global.v4.u32 {{%r1,%r2,%r3,%r4}}, [%l3];\n"
                      "ld.global.v4.u32 {{%r5,%r6,%r7,%r8}}, [%l3+16];\n"
                      "ld.global.v4.f32 {{%f0,%f1,%f2,%f3}}, [%l3+32];\n"
                      "mma.sync.aligned.m16n8k32.row.col.f32.{}.{}.f32 {{%f0,%f1,%f2,%f3}}, "
                      "{{%r1,%r2,%r3,%r4}}, {{%r5,%r6}}, {{%f0,%f1,%f2,%f3}};\n"
                      "st.global.v4.f32 [%l5], {{%f0,%f1,%f2,%f3}};\n",
                      a_is_e5m2 ? "e5m2" : "e4m3", b_is_e5m2 ? "e5m2" : "e4m3"),
          in);
      for (int lane = 0; lane < 32; ++lane)
        for (int part = 0; part < 4; ++part) {
          float expected = static_cast<float>(100 * lane + part);
          for (int k = 0; k < 32; ++k)
            expected += static_cast<float>(a_at(lane / 4 + part / 2 * 8, k) *
                                           b_at(k, 2 * (lane % 4) + part % 2));
          EXPECT_EQ(std::bit_cast<float>(out[static_cast<size_t>(4 * lane + part)]), expected)
              << a_is_e5m2 << b_is_e5m2 << " lane " << lane << " part " << part;
        }
    }
}

}  // namespace
}  // namespace fullbore::ptx
