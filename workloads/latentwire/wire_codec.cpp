#include "workloads/latentwire/wire_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/check.h"
#include "fullbore/base/dtype.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kMostExtent = 65536, kMostNumbers = int64_t{1} << 24;
constexpr uint16_t kOne = 0x3c00;  // as f16

uint32_t mask_of(int64_t bits) { return (uint32_t{1} << bits) - 1; }

/// Numbers of a few bits behind each other in bytes, the lowest bits first.
class BitWriter {
 public:
  void put(uint32_t value, int64_t bits) {
    waiting_ |= value << count_;
    count_ += bits;
    for (; count_ >= 8; count_ -= 8, waiting_ >>= 8) bytes.push_back(static_cast<char>(waiting_));
  }
  void end() {
    if (count_ > 0) bytes.push_back(static_cast<char>(waiting_));
  }
  std::string bytes;

 private:
  uint32_t waiting_ = 0;
  int64_t count_ = 0;
};

int32_t number_at(const std::string& payload, int64_t place, int64_t bits) {
  const int64_t bit = place * bits;
  const auto byte = static_cast<size_t>(bit / 8);
  uint32_t word = static_cast<unsigned char>(payload[byte]);
  if (byte + 1 < payload.size())
    word |= static_cast<uint32_t>(static_cast<unsigned char>(payload[byte + 1])) << 8;
  const uint32_t value = word >> (bit % 8) & mask_of(bits);
  const uint32_t sign = uint32_t{1} << (bits - 1);
  return static_cast<int32_t>(value ^ sign) - static_cast<int32_t>(sign);
}

Failure refused(int64_t place, const WireForm& form, float value, const char* why) {
  return Failure{
      fmt::format("slot {}, number {}: {} {}", place / form.width, place % form.width, value, why)};
}

}  // namespace

Status check_wire_form(const WireForm& form) {
  const auto within = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
  if (!within(form.slots, kMostExtent))
    return Failure{fmt::format("{} slots; 1 to {} were expected", form.slots, kMostExtent)};
  if (!within(form.width, kMostExtent))
    return Failure{fmt::format("a width of {}; 1 to {} was expected", form.width, kMostExtent)};
  if (form.numbers() > kMostNumbers)
    return Failure{fmt::format("{} x {} numbers; at most {} were expected", form.slots, form.width,
                               kMostNumbers)};
  if (form.bits != 16 && (form.bits < 2 || form.bits > 8))
    return Failure{fmt::format("{} bits a number; 16 or 2 to 8 were expected", form.bits)};
  if (!within(form.group, kMostExtent))
    return Failure{fmt::format("groups of {}; 1 to {} were expected", form.group, kMostExtent)};
  return success();
}

Result<WireNumbers> quantize_wire(std::span<const float> z, const WireForm& form) {
  FB_CHECK(std::ssize(z) == form.numbers() && check_wire_form(form).ok(), "{} numbers of {} x {}",
           z.size(), form.slots, form.width);
  for (int64_t i = 0; i < form.numbers(); ++i)
    if (!std::isfinite(z[static_cast<size_t>(i)]))
      return refused(i, form, z[static_cast<size_t>(i)], "is not finite");
  WireNumbers numbers;
  BitWriter writer;
  if (form.bits == 16) {
    for (int64_t i = 0; i < form.numbers(); ++i) {
      const uint16_t half = f32_to_f16(z[static_cast<size_t>(i)]);
      if (!std::isfinite(f16_to_f32(half)))
        return refused(i, form, z[static_cast<size_t>(i)], "is beyond f16");
      writer.put(half, 16);
    }
    numbers.payload = std::move(writer.bytes);
    return numbers;
  }
  const auto most = static_cast<double>((1 << (form.bits - 1)) - 1);
  for (int64_t begin = 0; begin < form.numbers(); begin += form.group) {
    const int64_t end = std::min(begin + form.group, form.numbers());
    int64_t largest = begin;
    for (int64_t i = begin; i < end; ++i)
      if (std::abs(z[static_cast<size_t>(i)]) > std::abs(z[static_cast<size_t>(largest)]))
        largest = i;
    const double magnitude = std::abs(z[static_cast<size_t>(largest)]);
    uint16_t half = f32_to_f16(static_cast<float>(magnitude / most));
    if (f16_to_f32(half) == 0) half = kOne;
    if (!std::isfinite(f16_to_f32(half)))
      return refused(largest, form, z[static_cast<size_t>(largest)], "needs a scale beyond f16");
    numbers.scales.push_back(half);
    const double scale = f16_to_f32(half);
    for (int64_t i = begin; i < end; ++i) {
      // The mode of rounding is to nearest even, as programs begin.
      const double q =
          std::clamp(std::nearbyint(z[static_cast<size_t>(i)] / scale), -most - 1, most);
      writer.put(static_cast<uint32_t>(static_cast<int32_t>(q)) & mask_of(form.bits), form.bits);
    }
  }
  writer.end();
  numbers.payload = std::move(writer.bytes);
  return numbers;
}

std::vector<float> dequantize_wire(const WireNumbers& numbers, const WireForm& form) {
  FB_CHECK(std::ssize(numbers.payload) == form.payload_bytes() &&
               std::ssize(numbers.scales) == form.groups(),
           "{} bytes and {} scales", numbers.payload.size(), numbers.scales.size());
  std::vector<float> z;
  z.reserve(static_cast<size_t>(form.numbers()));
  for (int64_t i = 0; i < form.numbers(); ++i) {
    if (form.bits == 16) {
      const auto at = static_cast<size_t>(2 * i);
      const auto low = static_cast<unsigned char>(numbers.payload[at]);
      const auto high = static_cast<unsigned char>(numbers.payload[at + 1]);
      z.push_back(f16_to_f32(static_cast<uint16_t>(low | high << 8)));
    } else {
      const float scale = f16_to_f32(numbers.scales[static_cast<size_t>(i / form.group)]);
      z.push_back(static_cast<float>(number_at(numbers.payload, i, form.bits)) * scale);
    }
  }
  return z;
}

Result<std::vector<float>> through_wire(std::span<const float> z, const WireForm& form) {
  const Result<WireNumbers> numbers = quantize_wire(z, form);
  if (!numbers.ok()) return Failure{numbers.error()};
  return dequantize_wire(numbers.value(), form);
}

}  // namespace fullbore::latentwire
