#include "fullbore/device/cuda/driver/encoded_map.h"

namespace fullbore::cuda {

EncodedMap encoded_map(const Driver& driver, const TensorMap& map, uint64_t address) {
  constexpr std::array<uint32_t, 3> kEach = {1, 1, 1};
  EncodedMap made{};
  driver.encode_map(made.bytes.data(), map.dtype == DType::f16 ? kMapOfF16 : kMapOfBf16,
                    static_cast<unsigned>(map.extents.size()), address, map.extents.data(),
                    map.strides.data(), map.box.data(), kEach.data(), 0, kMapSwizzle128,
                    kMapPromotion256, 0);
  return made;
}

}  // namespace fullbore::cuda
