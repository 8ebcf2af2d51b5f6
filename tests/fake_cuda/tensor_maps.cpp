// The fake driver's call about tensor maps: drivers want a context, though they make no use of it.
#include "tests/fake_cuda/entry.h"
#include "tests/support/ptx/tensor_map.h"

using fullbore::fake_cuda::Entry;
namespace ptx = fullbore::ptx;

extern "C" {

int cuTensorMapEncodeTiled(void* map, int dtype, unsigned rank, void* address,
                           const uint64_t* extents, const uint64_t* strides, const uint32_t* box,
                           const uint32_t* element_strides, int interleave, int swizzle,
                           int promotion, int fill) {
  const Entry entry("cuTensorMapEncodeTiled");
  if (entry.code() != 0) return entry.code();
  return ptx::encode_tensor_map(map, dtype, rank, address, extents, strides, box, element_strides,
                                interleave, swizzle, promotion, fill);
}

}  // extern "C"
