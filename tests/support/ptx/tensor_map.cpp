#include "tests/support/ptx/tensor_map.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace fullbore::ptx {
namespace {

/// As the bytes have it. `digest` is of all others: half a map, or parts of two, is none.
struct Encoded {
  uint64_t magic;
  uint64_t address;
  uint64_t extents[5];
  uint64_t strides[4];
  uint32_t box[5];
  uint8_t dtype, rank, swizzle, fill;
  uint64_t unused;
  uint64_t digest;
};
static_assert(sizeof(Encoded) == kTensorMapBytes && std::is_trivially_copyable_v<Encoded>);
constexpr uint64_t kMagic = 0x70616d726f736e74;

// FNV-1a of the bytes before the digest.
uint64_t digest_of(const Encoded& map) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&map);
  uint64_t digest = 0xcbf29ce484222325;
  for (size_t i = 0; i < offsetof(Encoded, digest); ++i)
    digest = (digest ^ bytes[i]) * 0x100000001b3;
  return digest;
}

bool is_16_bits(int dtype) { return dtype == 1 || dtype == 6 || dtype == 9; }

}  // namespace

int64_t TensorMap::box_bytes() const {
  int64_t bytes = element_bytes();
  for (int i = 0; i < rank; ++i) bytes *= box[static_cast<size_t>(i)];
  return bytes;
}

// The rules are those of the CUDA Driver API, "Tensor Map Object Management". That a stride is at least what it steps over is
// not among them as such: there each is the stride before times an extent and padding.
int encode_tensor_map(void* map, int dtype, unsigned rank, void* address, const uint64_t* extents,
                      const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
                      int interleave, int swizzle, int promotion, int fill) {
  constexpr int kRefused = 1;
  constexpr uint64_t kStrideEnd = uint64_t{1} << 40;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (map == nullptr || reinterpret_cast<uintptr_t>(map) % kTensorMapAlignment != 0)
    return kRefused;
  if (!is_16_bits(dtype) || rank < 1 || rank > 5 || at == 0 || at % 16 != 0) return kRefused;
  if (extents == nullptr || (strides == nullptr && rank > 1) || box == nullptr ||
      element_strides == nullptr)
    return kRefused;
  if (interleave != 0 || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3)
    return kRefused;
  // NaN are of reals alone.
  if (fill < 0 || fill > 1 || (fill == 1 && dtype == 1)) return kRefused;
  Encoded made{};
  uint64_t within = sizeof(uint16_t);
  for (unsigned i = 0; i < rank; ++i) {
    if (extents[i] < 1 || extents[i] > uint64_t{1} << 32 || box[i] < 1 || box[i] > 256 ||
        element_strides[i] != 1)
      return kRefused;
    made.extents[i] = extents[i];
    made.box[i] = box[i];
    if (i > 0) {
      const uint64_t stride = strides[i - 1];
      if (stride % 16 != 0 || stride >= kStrideEnd || stride < within) return kRefused;
      made.strides[i - 1] = within = stride;
    }
    within = within > kStrideEnd / extents[i] ? kStrideEnd : within * extents[i];
  }
  const uint64_t inner_bytes = box[0] * sizeof(uint16_t);
  if (inner_bytes % 16 != 0) return kRefused;
  if (swizzle > 0 && inner_bytes > uint64_t{16} << swizzle) return kRefused;
  made.magic = kMagic;
  made.address = at;
  made.dtype = static_cast<uint8_t>(dtype);
  made.rank = static_cast<uint8_t>(rank);
  made.swizzle = static_cast<uint8_t>(swizzle);
  made.fill = static_cast<uint8_t>(fill);
  made.digest = digest_of(made);
  std::memcpy(map, &made, sizeof(made));
  return 0;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  Encoded from;
  if (bytes.size() != sizeof(from)) return std::nullopt;
  std::memcpy(&from, bytes.data(), sizeof(from));
  if (from.magic != kMagic || from.digest != digest_of(from)) return std::nullopt;
  TensorMap map{.dtype = from.dtype,
                .rank = from.rank,
                .swizzle = from.swizzle,
                .fill = from.fill,
                .address = from.address};
  std::ranges::copy(from.extents, map.extents.begin());
  map.strides[0] = sizeof(uint16_t);
  std::ranges::copy(from.strides, map.strides.begin() + 1);
  std::ranges::copy(from.box, map.box.begin());
  return map;
}

}  // namespace fullbore::ptx
