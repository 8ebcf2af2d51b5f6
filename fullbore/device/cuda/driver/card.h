#pragma once
#include <cstdint>
#include <string>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/device/cuda/driver/driver.h"

namespace fullbore::cuda {

/// One card of the machine.
struct Card {
  int number = 0;  ///< among those that the driver shows
  int handle = 0;  ///< as the driver's calls take it
  std::string name;
  int64_t bytes = 0;  ///< of its memory
  CardFacts facts;

  /// "NVIDIA H200, compute capability 9.0, 139.8 GiB, driver CUDA 12.4".
  std::string text(const Driver& driver) const;
};

/// The number in "cuda:1"; 0 in "cuda". UsageError: it is no number.
int card_number(const std::string& device);

/// UsageError: there is no such card, or its compute capability is below 8.0.
Card find_card(const Driver& driver, int number);

}  // namespace fullbore::cuda
