#pragma once
// Products of a warpgroup, four warps, by the tensor cores of compute capability 9.0: sums [64, N] in registers, both
// operands in shared memory, 64 of k at a time (PTX ISA 9.7.15). Warp w has rows 16 w to 16 w + 15 of the sums; in sums[4 j + p]
// lane 4 g + t has row g + 8 (p / 2), column 8 j + 2 t + p % 2.
//
// Operands lie in rows of 128 bytes, of whose eight chunks of 16 bytes that with index c lies at c ^ (row % 8): the
// 128-byte swizzle. Depth-last: a row of 64 of k for each line. Else a row of 64 lines for each k, and blocks of 64 lines one
// behind another. Tiles begin at multiples of 1024 bytes.
#include "fullbore/device/cuda/kernels/elements.h"

constexpr int kStepDepth = 64;                    // of k in a stage
constexpr int kLinesBytes = 64 * kStepDepth * 2;  // of 64 lines of an operand

/// What tells the tensor cores where 64 of k of an operand lie.
template <bool kDepthLast>
FB_DEVICE unsigned long operand_at(unsigned address) {
  constexpr unsigned long kSwizzle128 = 1UL << 62;
  constexpr unsigned long kEightRows = 1024 >> 4;
  constexpr unsigned long kNextLines =
      kDepthLast ? 1 : kLinesBytes >> 4;  // unused where depth is last
  return kSwizzle128 | kEightRows << 32 | kNextLines << 16 | (address >> 4 & 0x3fff);
}
/// From 16 of k to the next.
template <bool kDepthLast>
constexpr unsigned long kNextDepth = (kDepthLast ? 32 : 16 * 128) >> 4;

/// Sums and shared memory are as the instructions before it left them.
FB_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FB_DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Until no more than so many groups are not complete. The sums of the others are not to be touched.
template <int kLeft>
FB_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
/// What this thread has written to shared memory comes before what tensor cores read behind the next barrier.
FB_DEVICE void show_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define FB_SUMS_4(s, i) "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3])
#define FB_SUMS_16(s, i) \
  FB_SUMS_4(s, i), FB_SUMS_4(s, i + 4), FB_SUMS_4(s, i + 8), FB_SUMS_4(s, i + 12)
#define FB_SUMS_64(s, i) \
  FB_SUMS_16(s, i), FB_SUMS_16(s, i + 16), FB_SUMS_16(s, i + 32), FB_SUMS_16(s, i + 48)
#define FB_NAMES_64                                                                                \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25," \
  "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,"   \
  "%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define FB_NAMES_128                                                                              \
  FB_NAMES_64                                                                                     \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86," \
  "%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"  \
  "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,"    \
  "%126,%127"

/// Behind a wait for all products: from here on the sums may be read.
FB_DEVICE void take_sums(float (&sums)[64]) { asm volatile("" : FB_SUMS_64(sums, 0)::"memory"); }
FB_DEVICE void take_sums(float (&sums)[128]) {
  asm volatile("" : FB_SUMS_64(sums, 0), FB_SUMS_64(sums, 64)::"memory");
}

// sums = a b, or sums += a b: 16 of k. kAcross: do lines lie contiguous, in place of k?
#define FB_WARPGROUP_PRODUCT(T, TYPE, N, NAMES, LAST, COUNT, ...)                                    \
  template <int kAcrossA, int kAcrossB>                                                              \
  FB_DEVICE void add_product(float(&sums)[COUNT], unsigned long a, unsigned long b, bool adds,       \
                             T) {                                                                    \
    asm volatile(                                                                                  \
        "{\n\t.reg .pred adds;\n\tsetp.ne.b32 adds, " LAST(2) ", 0;\n\t"                            \
        "wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" NAMES "}, " LAST(0)     \
        ", " LAST(1) ", adds, 1, 1, " LAST(3) ", " LAST(4) ";\n\t}"                                 \
        : __VA_ARGS__                                                                              \
        : "l"(a), "l"(b), "r"(static_cast<int>(adds)), "n"(kAcrossA), "n"(kAcrossB)                \
        : "memory"); \
  }
#define FB_BEHIND_64(i) "%" FB_64_##i
#define FB_BEHIND_128(i) "%" FB_128_##i
#define FB_64_0 "64"
#define FB_64_1 "65"
#define FB_64_2 "66"
#define FB_64_3 "67"
#define FB_64_4 "68"
#define FB_128_0 "128"
#define FB_128_1 "129"
#define FB_128_2 "130"
#define FB_128_3 "131"
#define FB_128_4 "132"
FB_WARPGROUP_PRODUCT(Bf16, "bf16", "128", FB_NAMES_64, FB_BEHIND_64, 64, FB_SUMS_64(sums, 0))
FB_WARPGROUP_PRODUCT(F16, "f16", "128", FB_NAMES_64, FB_BEHIND_64, 64, FB_SUMS_64(sums, 0))
FB_WARPGROUP_PRODUCT(Bf16, "bf16", "256", FB_NAMES_128, FB_BEHIND_128, 128, FB_SUMS_64(sums, 0),
                     FB_SUMS_64(sums, 64))
FB_WARPGROUP_PRODUCT(F16, "f16", "256", FB_NAMES_128, FB_BEHIND_128, 128, FB_SUMS_64(sums, 0),
                     FB_SUMS_64(sums, 64))
