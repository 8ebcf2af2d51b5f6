#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// Tensor maps: what cp.async.bulk.tensor knows of the tensor that it copies from. NVIDIA's 128 bytes are secret; these are
// the machine's own, so that a driver or a test that makes maps needs no machine, and other bytes are met.
namespace fullbore::ptx {

inline constexpr size_t kTensorMapBytes = 128;
inline constexpr size_t kTensorMapAlignment = 64;

/// A tensor and the box of it that a copy brings; dimension 0 is the innermost, of elements one behind the other.
struct TensorMap {
  int dtype = 0;  ///< of the driver: 1 u16, 6 f16, 9 bf16
  int rank = 1;
  int swizzle = 0;  ///< 0: none; 1, 2 and 3: of 32, 64 and 128 bytes
  int fill = 0;     ///< of what is outside; 0: zeros; 1: NaN
  uint64_t address = 0;
  std::array<uint64_t, 5> extents{};  ///< elements
  std::array<uint64_t, 5> strides{};  ///< bytes from one to the next
  std::array<uint32_t, 5> box{};      ///< elements
  int64_t element_bytes() const { return 2; }
  int64_t box_bytes() const;
};

/// cuTensorMapEncodeTiled of the driver, argument by argument: writes kTensorMapBytes to `map`, which lies at a multiple of
/// kTensorMapAlignment. `address` is the card's (of DeviceMemory). `extents`: `rank` of them; `strides`: rank - 1, bytes, of
/// the dimensions but the innermost. Returns 0, or CUDA_ERROR_INVALID_VALUE (1), and then writes nothing, where what the
/// driver documents is not kept.
int encode_tensor_map(void* map, int dtype, unsigned rank, void* address, const uint64_t* extents,
                      const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                      int interleave, int swizzle, int promotion, int fill);

/// None: the bytes are not a whole map.
std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes);

}  // namespace fullbore::ptx
