#pragma once
// What kernels of these tests need of clang's builtins, in place of CUDA's headers.

#define FB_KERNEL extern "C" __attribute__((global))
#define FB_SHARED __attribute__((shared))
#define FB_DEVICE __attribute__((device)) inline

FB_DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
FB_DEVICE int threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
FB_DEVICE int block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
FB_DEVICE int block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
FB_DEVICE void barrier() { __nvvm_bar_sync(0); }
FB_DEVICE float from_lane_xor(float x, int mask) {
  return __nvvm_shfl_sync_bfly_f32(0xffffffffU, x, mask, 31);
}
/// Where shared memory lies in its window: inline assembly wants that.
FB_DEVICE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(
      reinterpret_cast<unsigned long>((const __attribute__((address_space(3))) void*)pointer));
}
