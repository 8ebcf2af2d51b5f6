#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::cuda {

/// A card as its maker describes it: what a plan for it goes by where it is not at hand. Peaks are dense and published,
/// with sums in fp32; no step was measured on it.
struct KnownCard {
  std::string_view name;  ///< "RTX 4090"
  int capability = 0;     ///< 89: compute capability 8.9
  int multiprocessors = 0;
  double memory_bytes = 0;
  double bytes_per_second = 0;
  double fp32_flops = 0;  ///< per second, without tensor cores
  double tf32_flops = 0;
  double bf16_flops = 0;
  double fp8_flops = 0;  ///< 0: it has none
  /// In one direction, of the PCI Express that it is made for: 8 or 16 lanes, less one part of 65 for framing. A machine
  /// may have fewer.
  double host_bytes_per_second = 0;
  std::string_view source;

  CardFacts facts() const;
};

/// Cards that plans know by name, in the order of their memory.
std::span<const KnownCard> known_cards();
/// By its name or a part of it in any case, with or without the maker's: "4090", "rtx4090", "NVIDIA H200". UsageError
/// with the nearest name, or all that are meant.
const KnownCard& known_card(std::string_view name);

}  // namespace fullbore::cuda
