#pragma once
// Boxes of a tensor that the copy engine of compute capability 9.0 brings to shared memory, the barriers that count their
// bytes, and pairs of blocks (clusters of two) that bring boxes for each other (PTX ISA 9.7.8.24, 9.7.12.15).
#include "fullbore/device/cuda/kernels/elements.h"

/// A parameter that tells the copy engine where a tensor of three axes lies (cuda_kernel.h). Its address, not its contents,
/// is what instructions take: FB_MAP_ADDRESS.
struct alignas(64) TensorMap {
  unsigned long words[16];
};
/// The address of a parameter of the kernel: clang would copy it to local memory, where no tensor map may lie.
#define FB_MAP_ADDRESS(ADDRESS, ENTRY, PARAMETER) \
  asm("mov.b64 %0, " ENTRY "_param_" PARAMETER ";\n\tcvta.param.u64 %0, %0;" : "=l"(ADDRESS))

constexpr int kBlocksOfPair = 2;
FB_DEVICE int rank_in_pair() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// What threads of both blocks did before it comes before what they do behind it.
FB_DEVICE void pair_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

/// Of one thread, before pair_barrier(): a phase ends when so many have arrived and all bytes that were expected are there.
FB_DEVICE void init_phases(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// The thread that did so, behind the last of them: the copy engine and the other block see them.
FB_DEVICE void show_phases() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// Arrives, and says how many bytes the phase has.
FB_DEVICE void expect_bytes(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Arrives at the same barrier of a block of the pair.
FB_DEVICE void arrive_at(unsigned barrier, int rank) {
  asm volatile(
      "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Until the phase of that parity is over, which ends by bytes or by threads of this block: the first has 0, and before it
/// one of parity 1 is.
FB_DEVICE void wait_for_phase(unsigned barrier, int parity) {
  asm volatile(
      "{\n\t.reg .pred over;\nWAIT_%=:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n\t@!over bra WAIT_%=;\n\t}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

/// The same of a phase that threads of both blocks of the pair end.
FB_DEVICE void wait_for_phase_of_pair(unsigned barrier, int parity) {
  asm volatile(
      "{\n\t.reg .pred over;\nWAIT_%=:\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n\t"
      "@!over bra WAIT_%=;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// The box of the map at (inner, middle, outer), to the block itself. Zeros where there is no tensor; `barrier` gets the bytes
/// of a whole box.
FB_DEVICE void bring_box(unsigned to, unsigned long map, int inner, int middle, int outer,
                         unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(inner), "r"(middle), "r"(outer), "r"(barrier)
      : "memory");
}
/// The same to both blocks of the pair, at the same place of either, and for the barrier there of either.
FB_DEVICE void bring_box_to_both(unsigned to, unsigned long map, int inner, int middle, int outer,
                                 unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(inner), "r"(middle), "r"(outer), "r"(barrier),
      "h"(static_cast<unsigned short>(3))
      : "memory");
}

/// Registers of a thread of this warpgroup, from here on: all four warps say so. Those that copies need few of are for others.
template <int kCount>
FB_DEVICE void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
FB_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
