#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"
#include "workloads/latentwire/wire_codec.h"

namespace fullbore::latentwire {

/// A prompt as it is stored and sent. The file, little-endian and packed:
///
///   "FBLW", u32 version (1), u64 fingerprint, u32 slots, u32 width, u32 bits, u32 group,
///   groups x f16 scales, payload, u32 CRC-32C of all before
struct Wire {
  uint64_t fingerprint = 0;  ///< of the encoder that wrote it: its weights and its configuration
  WireForm form;
  WireNumbers numbers;

  std::vector<float> z() const { return dequantize_wire(numbers, form); }  ///< [slots, width]
};

std::string wire_bytes(const Wire& wire);
/// Failure: "source: byte 8: ..." with what was expected. `source`: how messages name where the bytes came from.
Result<Wire> parse_wire(std::string_view bytes, const std::string& source);

Result<Wire> read_wire(const std::string& path);
Status write_wire(const Wire& wire, const std::string& path);

/// Failure where it was written by another encoder, or has not `slots` x `width` numbers.
Status check_wire(const Wire& wire, uint64_t fingerprint, int64_t slots, int64_t width,
                  const std::string& source);

}  // namespace fullbore::latentwire
