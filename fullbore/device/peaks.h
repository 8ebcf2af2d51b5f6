#pragma once
#include <cstdint>
#include <string>

#include "fullbore/device/address.h"

namespace fullbore {

/// What a machine can do at most: the yardstick of every utilisation and roofline that we print.
struct MachinePeaks {
  double fp32_flops = 0;  ///< per second, all workers
  double bf16_flops = 0;
  double bytes_per_second = 0;
  double tf32_flops = 0;  ///< 0: it has no such products
  /// Between the host's pinned memory and the device's own, in one direction; 0: there is no such way, or it is not known.
  double host_bytes_per_second = 0;
};

/// No bound of the memory that measuring takes: 288 MiB at most.
inline constexpr int64_t kAnyMemory = int64_t{1} << 62;

/// What the arrays may lie in that a device measures its bandwidth with.
struct PeakMemory {
  int64_t bytes = kAnyMemory;  ///< that may be allocated
  Address lent = {};           ///< or this memory of the device, whose contents are lost
  int64_t lent_bytes = 0;
};

struct MeasuredPeaks {
  MachinePeaks peaks;
  std::string fp32_method;   ///< "avx512f fma"
  std::string bf16_method;   ///< "avx512 bf16 dot", or why it is not native
  bool native_bf16 = false;  ///< else the bf16 peak is the fp32 one: matmuls are widened
  bool busy = false;         ///< other processes were in the way: the bandwidth may be too low
  bool in_caches =
      false;  ///< too little memory for the triad's arrays: the bandwidth may be too high
  std::string tf32_method = {};  ///< "mma.sync"; "": it has no such products
};

}  // namespace fullbore
