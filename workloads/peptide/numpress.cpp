#include "workloads/peptide/numpress.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fullbore::peptide {
namespace {

using Problem = std::optional<std::string>;

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

/// Takes the fixed point off the front of `bytes`.
Problem take_fixed_point(std::string_view& bytes, double& fixed_point) {
  if (bytes.size() < sizeof(double))
    return fmt::format("has {} bytes of MS-Numpress, expected a fixed point of 8", bytes.size());
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(double); ++i)
    bits = (bits << 8) | static_cast<unsigned char>(bytes[i]);
  bytes.remove_prefix(sizeof(double));
  fixed_point = std::bit_cast<double>(bits);
  // Writers have none for an empty array, which has no need of it.
  if (!bytes.empty() && !(std::isfinite(fixed_point) && fixed_point > 0))
    return fmt::format("its fixed point is {}, expected a positive number", fixed_point);
  return {};
}

Problem ends_within(size_t count) {
  return fmt::format("its MS-Numpress data end within number {}", count + 1);
}

/// Appends numbers up to a limit.
class Numbers {
 public:
  /// likely: how many numbers there may be; no room is made beyond `most`.
  Numbers(std::vector<double>& values, size_t most, size_t likely) : values_(values), most_(most) {
    values_.clear();
    values_.reserve(std::min(most, likely));
  }
  size_t count() const { return values_.size(); }
  Problem add(double value) {
    if (values_.size() == most_) return fmt::format("has more than {} numbers", most_);
    if (!std::isfinite(value)) return fmt::format("number {} overflows", values_.size() + 1);
    values_.push_back(value);
    return {};
  }

 private:
  std::vector<double>& values_;
  size_t most_;
};

class HalfByteIntegers {
 public:
  explicit HalfByteIntegers(std::string_view bytes) : bytes_(bytes), size_(2 * bytes.size()) {}

  /// A last half byte of zero fills its byte up: as the head of an integer it would want eight more.
  bool at_end() const {
    return position_ == size_ || (position_ + 1 == size_ && half_byte(position_) == 0);
  }

  /// False if the bytes end within it.
  bool take(uint32_t& value) {
    const uint32_t head = half_byte(position_++);
    const uint32_t ones = head > 8 ? head - 8 : 0;
    const uint32_t stored = 8 - (head > 8 ? ones : head);
    if (stored > size_ - position_) return false;
    value = ones > 0 ? ~uint32_t{0} << (4 * stored) : 0;
    for (uint32_t i = 0; i < stored; ++i) value |= half_byte(position_++) << (4 * i);
    return true;
  }

 private:
  uint32_t half_byte(size_t position) const {
    const auto byte = static_cast<unsigned char>(bytes_[position / 2]);
    return position % 2 == 0 ? byte >> 4 : byte & 0xF;
  }

  std::string_view bytes_;
  size_t size_;  // in half bytes, as all positions
  size_t position_ = 0;
};

}  // namespace

std::optional<std::string> decode_numpress_linear(std::string_view bytes, size_t most,
                                                  std::vector<double>& values) {
  constexpr size_t kWidth = sizeof(uint32_t);
  constexpr int64_t kLargest = int64_t{1} << 53;  // beyond it doubles skip integers
  double fixed_point = 0;
  if (auto problem = take_fixed_point(bytes, fixed_point)) return problem;
  Numbers numbers(values, most, 2 * bytes.size());
  int64_t last[2] = {0, 0};
  for (int64_t& first : last) {
    if (bytes.empty()) return {};
    if (bytes.size() < kWidth) return ends_within(numbers.count());
    first = static_cast<int64_t>(little_endian(bytes.substr(0, kWidth)));
    bytes.remove_prefix(kWidth);
    if (auto problem = numbers.add(static_cast<double>(first) / fixed_point)) return problem;
  }
  HalfByteIntegers integers(bytes);
  while (!integers.at_end()) {
    uint32_t residual = 0;
    if (!integers.take(residual)) return ends_within(numbers.count());
    const int64_t next = 2 * last[1] - last[0] + static_cast<int32_t>(residual);
    if (next < -kLargest || next > kLargest)
      return fmt::format("number {} overflows", numbers.count() + 1);
    if (auto problem = numbers.add(static_cast<double>(next) / fixed_point)) return problem;
    last[0] = last[1];
    last[1] = next;
  }
  return {};
}

std::optional<std::string> decode_numpress_integers(std::string_view bytes, size_t most,
                                                    std::vector<double>& values) {
  Numbers numbers(values, most, 2 * bytes.size());
  HalfByteIntegers integers(bytes);
  while (!integers.at_end()) {
    uint32_t value = 0;
    if (!integers.take(value)) return ends_within(numbers.count());
    if (auto problem = numbers.add(value)) return problem;
  }
  return {};
}

std::optional<std::string> decode_numpress_logarithms(std::string_view bytes, size_t most,
                                                      std::vector<double>& values) {
  constexpr size_t kWidth = sizeof(uint16_t);
  double fixed_point = 0;
  if (auto problem = take_fixed_point(bytes, fixed_point)) return problem;
  Numbers numbers(values, most, bytes.size() / kWidth);
  for (; !bytes.empty(); bytes.remove_prefix(kWidth)) {
    if (bytes.size() < kWidth) return ends_within(numbers.count());
    const auto logarithm = static_cast<double>(little_endian(bytes.substr(0, kWidth)));
    if (auto problem = numbers.add(std::expm1(logarithm / fixed_point))) return problem;
  }
  return {};
}

}  // namespace fullbore::peptide
