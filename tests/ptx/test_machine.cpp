// Single instructions, by their definitions, and what the machine refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {
namespace {

using ::testing::HasSubstr;

std::string kernel_of(const std::string& body) {
  return ".version 7.2\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
         ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .f64 %d<8>; "
         ".reg .b64 %l<16>;\n"
         "ld.param.u64 %l0, [out];\nld.param.u64 %l1, [in];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 "
         "%l2, %r0, 8;\n"
         "add.s64 %l3, %l0, %l2;\nadd.s64 %l4, %l1, %l2;\n" +
         body + "ret;\n}\n";
}

/// Runs a body whose threads read 8 bytes at [%l4] and write 8 bytes at [%l3]. Returns what they wrote.
std::vector<uint64_t> run_body(const std::string& body, const std::vector<uint64_t>& in,
                               uint32_t threads, uint32_t blocks = 1, uint64_t seed = 1,
                               int64_t shared = 0) {
  const Module module = parse(kernel_of(body));
  DeviceMemory memory;
  const auto bytes = static_cast<int64_t>(8 * std::max<size_t>(in.size(), threads));
  const uint64_t out = memory.allocate(bytes), from = memory.allocate(bytes);
  std::memcpy(memory.at(from, bytes).data(), in.data(), 8 * in.size());
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &out, 8);
  std::memcpy(parameters.data() + 8, &from, 8);
  run({.kernel = &module.kernels.at("k"),
       .grid = {blocks},
       .block = {threads},
       .dynamic_shared_bytes = shared,
       .parameters = parameters,
       .seed = seed},
      memory, 10'000);
  std::vector<uint64_t> result(threads);
  std::memcpy(result.data(), memory.at(out, int64_t{8} * threads).data(), 8 * result.size());
  return result;
}

std::string fault_of(const std::string& body, uint32_t threads = 1, uint32_t blocks = 1) {
  try {
    run_body(body, std::vector<uint64_t>(threads, 7), threads, blocks);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "none";
}

/// What one thread makes of two 32-bit operands, %r1 and %r2, in %r3.
uint32_t of_two(const std::string& instruction, uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(
      run_body("ld.global.v2.u32 {%r1,%r2}, [%l4];\nmov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\n" +
                   instruction + ";\nst.global.u32 [%l3], %r3;\n",
               {a | uint64_t{b} << 32}, 1)[0]);
}
float of_reals(const std::string& instruction, float a, float b = 0) {
  return std::bit_cast<float>(of_two(instruction + ";\nmov.b32 %r3, %f3",
                                     std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)));
}

// Of a word that overflows, of the next with that carry, and of a third.
TEST(PtxMachine, CarriesFromWordToWord) {
  const std::string sum =
      "ld.global.v2.u32 {%r1,%r2}, [%l4];\nadd.cc.u32 %r4, %r1, %r2;\naddc.cc.u32 %r5, %r1, 0;\n"
      "addc.u32 %r6, 0, 0;\nadd.s32 %r7, %r4, %r5;\nadd.s32 %r3, %r7, %r6;\n"
      "st.global.u32 [%l3], %r3;\n";
  const auto low = [](uint64_t word) { return static_cast<uint32_t>(word); };
  // 0xffffffff + 2 = 1 and a carry; 0xffffffff + 0 + 1 = 0 and a carry; 0 + 0 + 1.
  EXPECT_EQ(low(run_body(sum, {0xffffffff | uint64_t{2} << 32}, 1)[0]), 2U);
  // 5 + 7 = 12; 5 + 0; 0.
  EXPECT_EQ(low(run_body(sum, {5 | uint64_t{7} << 32}, 1)[0]), 17U);
  const std::string difference =
      "ld.global.v2.u32 {%r1,%r2}, [%l4];\nsub.cc.u32 %r4, %r1, %r2;\nsubc.u32 %r3, 9, 1;\n"
      "st.global.u32 [%l3], %r3;\n";
  EXPECT_EQ(low(run_body(difference, {3 | uint64_t{4} << 32}, 1)[0]), 7U);
  EXPECT_EQ(low(run_body(difference, {4 | uint64_t{4} << 32}, 1)[0]), 8U);
}

TEST(PtxMachine, Integers) {
  EXPECT_EQ(of_two("add.s32 %r3, %r1, %r2", 0xffffffff, 2), 1U);
  EXPECT_EQ(of_two("mul.lo.s32 %r3, %r1, %r2", 0x10001, 0x10001), 0x20001U);
  EXPECT_EQ(of_two("mul.hi.u32 %r3, %r1, %r2", 0x80000000, 6), 3U);
  EXPECT_EQ(of_two("mul.hi.s32 %r3, %r1, %r2", 0x80000000, 6), 0xfffffffdU);
  EXPECT_EQ(of_two("mad.lo.s32 %r3, %r1, %r2, 5", 3, 4), 17U);
  EXPECT_EQ(of_two("div.s32 %r3, %r1, %r2", static_cast<uint32_t>(-7), 2),
            static_cast<uint32_t>(-3));
  EXPECT_EQ(of_two("rem.s32 %r3, %r1, %r2", static_cast<uint32_t>(-7), 2),
            static_cast<uint32_t>(-1));
  EXPECT_EQ(of_two("div.u32 %r3, %r1, %r2", 5, 0), 0xffffffffU);
  EXPECT_EQ(of_two("shr.s32 %r3, %r1, %r2", 0x80000000, 40), 0xffffffffU);
  EXPECT_EQ(of_two("shr.u32 %r3, %r1, %r2", 0x80000000, 31), 1U);
  EXPECT_EQ(of_two("shl.b32 %r3, %r1, %r2", 1, 32), 0U);
  EXPECT_EQ(of_two("min.s32 %r3, %r1, %r2", 0xffffffff, 1), 0xffffffffU);
  EXPECT_EQ(of_two("max.u32 %r3, %r1, %r2", 0xffffffff, 1), 0xffffffffU);
  EXPECT_EQ(of_two("prmt.b32 %r3, %r1, %r2, 0x6420", 0x44332211, 0x88776655), 0x77553311U);
  EXPECT_EQ(of_two("prmt.b32 %r3, %r1, %r2, 0x6420U", 0x44332211, 0x88776655), 0x77553311U);
  EXPECT_EQ(of_two("prmt.b32 %r3, %r1, %r2, 0x9876", 0x443322f1, 0x88776655), 0x00ff8877U);
  EXPECT_EQ(of_two("lop3.b32 %r3, %r1, %r2, 255, 0x96", 0xf0f0, 0xff00), 0xf0f0U ^ 0xff00U ^ 0xffU);
  EXPECT_EQ(of_two("shf.l.wrap.b32 %r3, %r1, %r2, 8", 0x12345678, 0x9abcdef0), 0xbcdef012U);
  EXPECT_EQ(of_two("bfe.u32 %r3, %r1, 4, 8", 0xabcd1234, 0), 0x23U);
  EXPECT_EQ(of_two("bfe.s32 %r3, %r1, 8, 8", 0x0000f200, 0), 0xfffffff2U);
  EXPECT_EQ(of_two("popc.b32 %r3, %r1", 0xf0f0, 0), 8U);
  EXPECT_EQ(of_two("clz.b32 %r3, %r1", 0x00010000, 0), 15U);
  EXPECT_EQ(of_two("brev.b32 %r3, %r1", 1, 0), 0x80000000U);
  EXPECT_EQ(of_two("bfi.b32 %r3, %r1, %r2, 8, 4", 0xab, 0x11111111), 0x11111b11U);
  EXPECT_EQ(of_two("bfi.b32 %r3, %r1, %r2, 28, 8", 0xab, 0x11111111), 0xb1111111U);
  EXPECT_EQ(of_two("bfi.b32 %r3, %r1, %r2, 4, 0", 0xab, 0x11111111), 0x11111111U);
  // A signed byte fills the 16 bits of its register.
  EXPECT_EQ(of_two("cvt.s8.s32 %h1, %r1;\ncvt.s32.s16 %r3, %h1", 0x1289, 0), 0xffffff89U);
}

TEST(PtxMachine, SignsOf16BitReals) {
  const auto of_half = [](const std::string& instruction, uint32_t bits) {
    return of_two("cvt.u16.u32 %h1, %r1;\n" + instruction + " %h2, %h1;\ncvt.u32.u16 %r3, %h2",
                  bits, 0);
  };
  for (const std::string type : {"bf16", "f16"}) {
    EXPECT_EQ(of_half("abs." + type, 0xbf80), 0x3f80U);
    EXPECT_EQ(of_half("neg." + type, 0xbf80), 0x3f80U);
    EXPECT_EQ(of_half("neg." + type, 0x3f80), 0xbf80U);
  }
}

TEST(PtxMachine, Reals) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(of_reals("fma.rn.f32 %f3, %f1, %f1, %f2", 1 + 0x1p-12F, -1 - 0x1p-11F), 0x1p-24F);
  EXPECT_EQ(of_reals("add.ftz.f32 %f3, %f1, %f2", 1e-40F, 0), 0);
  EXPECT_EQ(of_reals("add.f32 %f3, %f1, %f2", 1e-40F, 0), 1e-40F);
  EXPECT_EQ(of_reals("max.f32 %f3, %f1, %f2", nan, 2), 2);
  EXPECT_TRUE(std::isnan(of_reals("max.NaN.f32 %f3, %f1, %f2", nan, 2)));
  EXPECT_EQ(of_reals("copysign.f32 %f3, %f1, %f2", -3, 2), -2);
  EXPECT_EQ(of_reals("copysign.f32 %f3, %f1, %f2", 3, -2), 2);
  EXPECT_EQ(of_reals("ex2.approx.f32 %f3, %f1", 3), 8);
  EXPECT_EQ(of_reals("rcp.rn.f32 %f3, %f1", 4), 0.25F);
  EXPECT_EQ(of_two("cvt.rzi.s32.f32 %r3, %f1", std::bit_cast<uint32_t>(-2.7F), 0),
            static_cast<uint32_t>(-2));
  EXPECT_EQ(of_two("cvt.rni.s32.f32 %r3, %f1", std::bit_cast<uint32_t>(2.5F), 0), 2U);
  EXPECT_EQ(of_two("cvt.rzi.u32.f32 %r3, %f1", std::bit_cast<uint32_t>(1e12F), 0), 0xffffffffU);
  EXPECT_EQ(of_two("cvt.rzi.s32.f32 %r3, %f1", std::bit_cast<uint32_t>(nan), 0), 0U);
  EXPECT_EQ(of_reals("cvt.rn.f32.s32 %f3, %r1", std::bit_cast<float>(0xfffffff9U)), -7);
  EXPECT_EQ(of_two("cvt.rn.bf16x2.f32 %r3, %f1, %f2", std::bit_cast<uint32_t>(1.0F),
                   std::bit_cast<uint32_t>(-2.0F)),
            0x3f80c000U);
  for (const auto& [name, expected] : {std::pair{"setp.lt.f32", 0U},
                                       {"setp.ltu.f32", 1U},
                                       {"setp.num.f32", 0U},
                                       {"setp.nan.f32", 1U},
                                       {"setp.neu.f32", 1U}})
    EXPECT_EQ(of_two(std::string(name) + " %p1, %f1, %f2;\nselp.u32 %r3, 1, 0, %p1",
                     std::bit_cast<uint32_t>(nan), std::bit_cast<uint32_t>(inf)),
              expected)
        << name;
}

// The nearest number of 10 bits of mantissa, halves away from zero, found without looking at bits.
double nearest_tf32(float x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), -126);
  const double step = std::ldexp(1.0, exponent - 10);
  return std::copysign(std::floor(std::abs(static_cast<double>(x)) / step + 0.5) * step, x);
}

TEST(PtxMachine, RoundsToTf32) {
  const auto rounded = [](float x) {
    return std::bit_cast<float>(of_two("cvt.rna.tf32.f32 %r3, %f1", std::bit_cast<uint32_t>(x), 0));
  };
  const float inf = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  for (const float sign : {1.0F, -1.0F}) {
    for (const float x :
         {0.0F, 1.0F, 1 + 0x1p-10F, 1 + 0x1p-11F, 1 + 0x1p-11F - 0x1p-23F, 1 + 0x1p-11F + 0x1p-23F,
          1 + 3 * 0x1p-11F, 2 - 0x1p-23F, 2 - 0x1p-11F, 3.14159265F, 1e-30F, 1e30F, 0x1p-126F,
          0x1.ffep-127F, 0x1p-140F, 0x1p-149F, 0x1p-137F, 0x1.ffcp127F}) {
      EXPECT_EQ(rounded(sign * x), nearest_tf32(sign * x)) << sign * x;
      EXPECT_EQ(std::signbit(rounded(sign * x)), sign < 0);
    }
    EXPECT_EQ(rounded(sign * inf), sign * inf);
    EXPECT_EQ(rounded(sign * largest), sign * inf) << "beyond the largest of 10 bits";
    EXPECT_EQ(rounded(sign * 0x1.ffdffep127F), sign * 0x1.ffcp127F);
  }
  // Payloads that lie in the lower bits alone would be cut off.
  for (const uint32_t nan : {0x7fc00000U, 0x7f800001U, 0xff801000U})
    EXPECT_TRUE(std::isnan(rounded(std::bit_cast<float>(nan)))) << nan;
}

/// d = a b + c by a warp, whose lanes read what of them is theirs: 4 words of a, 2 of b, 4 of c.
std::vector<float> tf32_product(const std::vector<float>& a, const std::vector<float>& b,
                                const std::vector<float>& c) {
  const Module module = parse(
      ".version 7.2\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
      ".reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %l<8>;\n"
      "ld.param.u64 %l0, [out];\nld.param.u64 %l1, [in];\nmov.u32 %r0, %tid.x;\n"
      "mul.wide.u32 %l2, %r0, 48;\nadd.s64 %l3, %l1, %l2;\n"
      "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%l3];\nld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%l3+16];\n"
      "ld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%l3+32];\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2,%r3,%r4}, "
      "{%r5,%r6}, {%f0,%f1,%f2,%f3};\n"
      "mul.wide.u32 %l4, %r0, 16;\nadd.s64 %l5, %l0, %l4;\n"
      "st.global.v4.f32 [%l5], {%f0,%f1,%f2,%f3};\nret;\n}\n");
  std::vector<float> of_lanes(32 * 12);
  const auto place = [](int lane, int part) {  // of c and d: row and column
    return std::pair(static_cast<size_t>(lane / 4 + part / 2 * 8),
                     static_cast<size_t>(2 * (lane % 4) + part % 2));
  };
  for (int lane = 0; lane < 32; ++lane) {
    float* const own = of_lanes.data() + ptrdiff_t{12} * lane;
    const auto group = static_cast<size_t>(lane / 4), t = static_cast<size_t>(lane % 4);
    for (size_t word = 0; word < 4; ++word)
      own[word] = a[(group + word % 2 * 8) * 8 + t + word / 2 * 4];
    for (size_t word = 0; word < 2; ++word) own[4 + word] = b[(t + word * 4) * 8 + group];
    for (int part = 0; part < 4; ++part) {
      const auto [row, column] = place(lane, part);
      own[8 + part] = c[row * 8 + column];
    }
  }
  DeviceMemory memory;
  const auto bytes = static_cast<int64_t>(4 * of_lanes.size());
  const uint64_t out = memory.allocate(4 * 128), from = memory.allocate(bytes);
  std::memcpy(memory.at(from, bytes).data(), of_lanes.data(), static_cast<size_t>(bytes));
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
  std::vector<float> of_out(128), d(128);
  std::memcpy(of_out.data(), memory.at(out, 4 * 128).data(), 4 * 128);
  for (int lane = 0; lane < 32; ++lane)
    for (int part = 0; part < 4; ++part) {
      const auto [row, column] = place(lane, part);
      d[row * 8 + column] = of_out[static_cast<size_t>(4 * lane + part)];
    }
  return d;
}

// Small integers, of which every product and sum is exact.
TEST(PtxMachine, MultipliesTf32) {
  std::vector<float> a(16 * 8), b(8 * 8), c(16 * 8);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * 37) % 101) - 50;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>((i * 53) % 89) - 44;
  for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>((i * 29) % 97) - 48;
  const std::vector<float> d = tf32_product(a, b, c);
  for (size_t row = 0; row < 16; ++row)
    for (size_t column = 0; column < 8; ++column) {
      float expected = c[row * 8 + column];
      for (size_t k = 0; k < 8; ++k) expected += a[row * 8 + k] * b[k * 8 + column];
      EXPECT_EQ(d[row * 8 + column], expected) << row << " " << column;
    }
  a[8 * 3 + 5] = std::nanf("");
  const std::vector<float> of_nan = tf32_product(a, b, c);
  for (size_t i = 0; i < of_nan.size(); ++i) EXPECT_EQ(std::isnan(of_nan[i]), i / 8 == 3) << i;
  a[8 * 3 + 5] = 1 + 0x1p-11F;
  EXPECT_THROW(tf32_product(a, b, c), Fault) << "an operand that nobody rounded";
}

TEST(PtxMachine, LanesOfAWarpExchange) {
  std::vector<uint64_t> in(40);
  for (size_t i = 0; i < in.size(); ++i) in[i] = 100 + i;
  const auto shuffled = [&](const std::string& mode, int b, int c) {
    return run_body(
        fmt::format("ld.global.u32 %r1, [%l4];\nsetp.ge.u32 %p1, %r0, 32;\n@%p1 bra END;\n"
                    "shfl.sync.{}.b32 %r2|%p2, %r1, {}, {}, -1;\nselp.u32 %r3, 1, 0, %p2;\n"
                    "st.global.v2.u32 [%l3], {{%r2, %r3}};\nEND:\n",
                    mode, b, c),
        in, 32);
  };
  const uint64_t yes = uint64_t{1} << 32;
  EXPECT_EQ(shuffled("down", 4, 31)[3], 107 | yes);
  EXPECT_EQ(shuffled("down", 4, 31)[30], 130U) << "its own, where there is none";
  EXPECT_EQ(shuffled("up", 4, 0)[7], 103 | yes);
  EXPECT_EQ(shuffled("up", 4, 0)[2], 102U);
  EXPECT_EQ(shuffled("bfly", 5, 31)[6], 103 | yes);
  EXPECT_EQ(shuffled("idx", 9, 31)[20], 109 | yes);
  EXPECT_EQ(shuffled("idx", 9, 0x181f)[20], 117 | yes) << "of its eight";
  const std::vector<uint64_t> votes = run_body(
      "setp.lt.u32 %p1, %r0, 5;\nvote.sync.ballot.b32 %r1, %p1, -1;\nst.global.u64 [%l3], %r1;\n",
      in, 32);
  EXPECT_EQ(votes[17] & 0xffffffff, 31U);
}

TEST(PtxMachine, RacesAreMetWhateverTheOrder) {
  const std::string race = ".shared .align 4 .b8 word[4];\nst.shared.u32 [word], %r0;\n";
  for (uint64_t seed = 1; seed < 8; ++seed) EXPECT_THROW(run_body(race, {}, 33, 1, seed), Fault);
  EXPECT_EQ(fault_of(race, 1), "none");
  // A barrier of the block orders all, one of a warp its lanes alone.
  const auto reads_behind = [](const std::string& barrier) {
    return ".shared .align 4 .b8 words[512];\nmul.lo.u32 %r1, %r0, 4;\nmov.u32 %r2, "
           "words;\nadd.u32 %r3, %r1, %r2;\n"
           "cvt.u64.u32 %l5, %r3;\nst.shared.u32 [%l5], %r0;\n" +
           barrier +
           "xor.b32 %r4, %r0, 33;\nmul.lo.u32 %r4, %r4, 4;\nadd.u32 %r4, %r4, %r2;\ncvt.u64.u32 "
           "%l6, %r4;\n"
           "ld.shared.u32 %r5, [%l6];\nst.global.u64 [%l3], %r5;\n";
  };
  EXPECT_THAT(fault_of(reads_behind(""), 64), HasSubstr("with nothing in between"));
  EXPECT_THAT(fault_of(reads_behind("bar.warp.sync -1;\n"), 64),
              HasSubstr("with nothing in between"));
  EXPECT_EQ(fault_of(reads_behind("bar.sync 0;\n"), 64), "none");
  // Blocks are never ordered.
  EXPECT_THAT(fault_of("st.global.u64 [%l3], %l1;\n", 2, 2), HasSubstr("of block"));
  EXPECT_EQ(fault_of("red.global.add.u32 [%l0], 1;\n", 8, 4), "none")
      << "atomic ones need no order";
  EXPECT_THAT(fault_of("red.global.add.u32 [%l0], 1;\nld.global.u32 %r1, [%l0];\n", 2),
              HasSubstr("with nothing in between"));
}

// Wherever the module declares it.
TEST(PtxMachine, DynamicSharedMemoryBeginsBehindThatOfFixedSize) {
  std::string text = kernel_of(
      ".shared .align 4 .b8 fixed[20];\nmov.u32 %r1, dynamic;\nmov.u32 %r2, fixed;\n"
      "mov.b64 %l5, {%r1, %r2};\nst.global.u64 [%l3], %l5;\n");
  const std::string entry = ".visible .entry";
  text.insert(text.find(entry), ".extern .shared .align 16 .b8 dynamic[];\n");
  const Module module = parse(text);
  DeviceMemory memory;
  const uint64_t out = memory.allocate(8);
  std::vector<std::byte> parameters(16);
  std::memcpy(parameters.data(), &out, 8);
  std::memcpy(parameters.data() + 8, &out, 8);
  const LaunchCounts counts = run({.kernel = &module.kernels.at("k"),
                                   .grid = {1},
                                   .block = {1},
                                   .dynamic_shared_bytes = 64,
                                   .parameters = parameters,
                                   .seed = 1},
                                  memory, 100);
  uint32_t places[2];
  std::memcpy(places, memory.at(out, 8).data(), 8);
  EXPECT_EQ(places[0] - places[1], 32U);
  EXPECT_EQ(counts.shared_bytes, 96);
  text.replace(text.find(".align 16"), 9, ".align 128");
  EXPECT_THROW(parse(text), Fault) << "which assemblers align to 16 bytes alone";
}

TEST(PtxMachine, BlocksAreOfAsManyThreadsAsTheKernelPromises) {
  std::string text = kernel_of("");
  text.insert(text.find("\n{\n"), "\n.maxntid 16, 2, 1");
  const Module module = parse(text);
  DeviceMemory memory;
  Launch launch{.kernel = &module.kernels.at("k"),
                .grid = {1},
                .block = {32},
                .parameters = std::vector<std::byte>(16)};
  EXPECT_GT(run(launch, memory).instructions, 0);
  launch.block = {33};
  EXPECT_THROW(run(launch, memory), Fault);
}

// As clang writes it.
constexpr const char* kDeclaration =
    ".extern .func cudaGraphSetConditional\n(\n.param .b64 cudaGraphSetConditional_param_0,\n"
    ".param .b32 cudaGraphSetConditional_param_1\n)\n;\n";
constexpr const char* kCall =
    "mov.u64 %l5, 77;\nmov.u32 %r1, 3;\n{ // callseq 0, 0\n.reg .b32 temp_param_reg;\n"
    ".param .b64 param0;\nst.param.b64 [param0+0], %l5;\n.param .b32 param1;\n"
    "st.param.b32 [param1+0], %r1;\ncall.uni\ncudaGraphSetConditional,\n(\nparam0,\nparam1\n);\n"
    "} // callseq 0\n";

TEST(PtxMachine, ConditionsOfAGraphAreSetByACallOfTheDriver) {
  const Module module = parse(kDeclaration + kernel_of(kCall));
  DeviceMemory memory;
  std::pair<uint64_t, uint32_t> set;
  Launch launch{.kernel = &module.kernels.at("k"), .parameters = std::vector<std::byte>(16)};
  launch.set_condition = [&](uint64_t condition, uint32_t value) {
    set = {condition, value};
    return condition == 77;
  };
  run(launch, memory, 100);
  EXPECT_EQ(set, std::pair(uint64_t{77}, uint32_t{3}));
  EXPECT_THAT(fault_of(kCall), HasSubstr("the function 'cudaGraphSetConditional' is not known"));
  launch.set_condition = {};
  EXPECT_THROW(run(launch, memory, 100), Fault);
}

TEST(PtxMachine, WhatAGpuWouldNotAllowIsRefused) {
  EXPECT_THAT(fault_of("ld.global.u32 %r1, [%l4+6];\n"),
              HasSubstr("is no multiple of 4 (line 13: ld.global.u32"));
  EXPECT_THAT(fault_of("ld.global.u64 %l5, [%l4+8];\n"), HasSubstr("are in no allocation"));
  EXPECT_THAT(fault_of("st.global.u64 [%l4+-8], %l1;\n"), HasSubstr("are in no allocation"));
  EXPECT_THAT(fault_of("mov.u64 %l5, 0;\nld.u64 %l6, [%l5];\n"), HasSubstr("at 0x0"));
  EXPECT_THAT(fault_of("LOOP:\nbra LOOP;\n"), HasSubstr("too many instructions"));
  EXPECT_THAT(fault_of("setp.eq.u32 %p1, %r0, 0;\n@%p1 bra END;\nbar.warp.sync -1;\nEND:\n", 32),
              HasSubstr("waits for lane 0, which has ended"));
  EXPECT_THAT(fault_of("setp.eq.u32 %p1, %r0, 0;\n@%p1 bra A;\nbar.sync 0;\nA:\nbar.sync 1;\n", 32),
              HasSubstr("waits for ever"));
  EXPECT_THAT(fault_of("add.rz.f32 %f1, %f2, %f3;\n"),
              HasSubstr("line 13: the instruction 'add.rz.f32' is not known"));
  EXPECT_THAT(fault_of("add.f32 %f1, %f2, %f99;\n"), HasSubstr("'%f99' is not declared"));
  EXPECT_THAT(fault_of("bra NOWHERE;\n"), HasSubstr("no label 'NOWHERE'"));
  EXPECT_THAT(fault_of("atom.global.add.f32 %f1, [%l0], %f2;\n"), HasSubstr("is not known"));
}

}  // namespace
}  // namespace fullbore::ptx
