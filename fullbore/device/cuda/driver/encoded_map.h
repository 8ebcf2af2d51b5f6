#pragma once
#include <array>
#include <cstddef>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/cuda/driver/driver.h"

namespace fullbore::cuda {

/// A tensor map as the driver makes it and kernels take it (CUtensorMap).
struct alignas(64) EncodedMap {
  std::array<std::byte, 128> bytes;
};

/// Of what lies at the address. DeviceError: the driver refuses it, as it does an address that is no multiple of 16.
EncodedMap encoded_map(const Driver& driver, const TensorMap& map, uint64_t address);

}  // namespace fullbore::cuda
