#pragma once
// What kernels of NVIDIA GPUs need of clang's builtins, in place of CUDA's headers.

#define FB_KERNEL extern "C" __attribute__((global))
#define FB_SHARED __attribute__((shared))
// Always inlined, early: what is passed by reference stays in registers.
#define FB_DEVICE __attribute__((device, always_inline)) inline
/// Behind a lambda's parameters: the same of it.
#define FB_INLINED __attribute__((always_inline))

// Where a thread is, and how many there are.
FB_DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
FB_DEVICE int thread_y() { return __nvvm_read_ptx_sreg_tid_y(); }
FB_DEVICE int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
FB_DEVICE int threads_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
FB_DEVICE int block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
FB_DEVICE int block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
FB_DEVICE int block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
FB_DEVICE int blocks_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
FB_DEVICE int blocks_z() { return __nvvm_read_ptx_sreg_nctaid_z(); }

FB_DEVICE void barrier() { __nvvm_bar_sync(0); }

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;
FB_DEVICE void warp_barrier() { __nvvm_bar_warp_sync(kAllLanes); }
FB_DEVICE float from_lane_xor(float x, int mask) {
  return __nvvm_shfl_sync_bfly_f32(kAllLanes, x, mask, 31);
}
FB_DEVICE double from_lane_xor(double x, int mask) {
  const long bits = __builtin_bit_cast(long, x);
  const int low = __nvvm_shfl_sync_bfly_i32(kAllLanes, static_cast<int>(bits), mask, 31);
  const int high = __nvvm_shfl_sync_bfly_i32(kAllLanes, static_cast<int>(bits >> 32), mask, 31);
  return __builtin_bit_cast(
      double, static_cast<long>(high) << 32 | static_cast<long>(static_cast<unsigned>(low)));
}
/// Of the lane so many behind this one; of the last lanes their own.
FB_DEVICE float from_lane_behind(float x, int distance) {
  return __nvvm_shfl_sync_down_f32(kAllLanes, x, distance, 31);
}
/// Bit l: does lane l say yes?
FB_DEVICE unsigned ballot(bool yes) { return __nvvm_vote_ballot_sync(kAllLanes, yes); }

/// Where shared memory lies in its window: inline assembly wants that.
FB_DEVICE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(
      reinterpret_cast<unsigned long>((const __attribute__((address_space(3))) void*)pointer));
}

// 16 bytes from global to shared memory, which are there after a wait and a barrier. Of less than 16 that are to be
// read the rest are zeros.
FB_DEVICE void copy_later(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
FB_DEVICE void copy_later(unsigned to, const void* from, int read) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(read)
               : "memory");
}
/// 4 bytes, of which 4 or 0 are read.
FB_DEVICE void copy_word(unsigned to, const void* from, int read) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(read)
               : "memory");
}
FB_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until no more than so many groups are on their way.
template <int kLeft>
FB_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

/// The same number, of which the compiler knows nothing: what is computed from it stays where it stands.
FB_DEVICE int unknown(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

template <class T>
constexpr FB_DEVICE T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr FB_DEVICE T most(T a, T b) {
  return a > b ? a : b;
}

/// 16 bytes that are moved at once.
typedef unsigned Vector4 __attribute__((ext_vector_type(4)));
