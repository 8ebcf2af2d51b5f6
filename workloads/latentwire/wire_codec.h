#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::latentwire {

/// How the numbers of a wire are stored: as f16, or in groups of `group` consecutive numbers with an f16 scale each.
struct WireForm {
  int64_t slots = 0;  ///< M
  int64_t width = 0;  ///< d_z
  int64_t bits = 16;  ///< of a number: 2 to 8, or 16
  int64_t group = 32;

  int64_t numbers() const { return slots * width; }
  int64_t groups() const { return bits == 16 ? 0 : (numbers() + group - 1) / group; }
  int64_t payload_bytes() const { return (numbers() * bits + 7) / 8; }
  /// Of one prompt: payload and scales.
  int64_t bytes() const { return payload_bytes() + 2 * groups(); }
  bool operator==(const WireForm&) const = default;
};

/// Is there such a form? 1 to 65536 slots of 1 to 65536 numbers, at most 2^24 of them, bits as above, groups of 1 to
/// 65536. Failure names the member.
Status check_wire_form(const WireForm& form);

/// Numbers as they are sent.
struct WireNumbers {
  std::vector<uint16_t>
      scales;  ///< f16, of each group: the largest magnitude / (2^(bits-1) - 1); 1 where that is 0
  std::string payload;  ///< two's complement, the lowest bits first; or f16, little-endian
};

/// z [slots, width]: q = round_half_even(z / scale) within [-2^(bits-1), 2^(bits-1) - 1], by the scale as it is stored.
/// Failure: a number that is not finite, or that f16 (its scale, in groups) cannot hold, by slot and place.
Result<WireNumbers> quantize_wire(std::span<const float> z, const WireForm& form);
/// The numbers again, of arrays that have the form's lengths: q * scale.
std::vector<float> dequantize_wire(const WireNumbers& numbers, const WireForm& form);
/// dequantize_wire() of quantize_wire(): what the receiver has.
Result<std::vector<float>> through_wire(std::span<const float> z, const WireForm& form);

}  // namespace fullbore::latentwire
