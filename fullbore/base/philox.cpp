#include "fullbore/base/philox.h"

#include <algorithm>

#include "fullbore/base/draw_unit.h"

namespace fullbore {
namespace {

// What is under way at a time lies in the first cache.
constexpr size_t kBlock = 128;

size_t whole_lanes(size_t count) { return (count + kDrawLanes - 1) / kDrawLanes * kDrawLanes; }

}  // namespace

double PhiloxStream::normal() {
  double value = 0;
  normals({&value, 1});
  return value;
}

void PhiloxStream::uniforms(std::span<double> out) {
  const DrawUnit& unit = draw_units().front();
  uint64_t bits[kBlock];
  for (; !out.empty(); out = out.subspan(std::min(kBlock, out.size()))) {
    const size_t count = std::min(kBlock, out.size());
    unit.bits(key_, stream_, position_, 1, bits, whole_lanes(count));
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(bits[i] >> 11) * 0x1p-53;
    position_ += count;
  }
}

/// take(values, n) of the next n, again and again, `values` up to whole lanes.
template <class Take>
void PhiloxStream::normal_blocks(size_t count, const Take& take) {
  const DrawUnit& unit = draw_units().front();
  uint64_t radius[kBlock];
  uint64_t angle[kBlock];
  double values[kBlock];
  while (count > 0) {
    const size_t block = std::min(kBlock, count);
    unit.bits(key_, stream_, position_, 2, radius, whole_lanes(block));
    unit.bits(key_, stream_, position_ + 1, 2, angle, whole_lanes(block));
    unit.normals(radius, angle, values, whole_lanes(block));
    take(values, block);
    position_ += 2 * block;
    count -= block;
  }
}

void PhiloxStream::normals(std::span<double> out) {
  double* to = out.data();
  normal_blocks(out.size(),
                [&](const double* values, size_t count) { to = std::copy_n(values, count, to); });
}

void PhiloxStream::normals(std::span<float> out, double mean, double deviation) {
  const DrawUnit& unit = draw_units().front();
  float* to = out.data();
  normal_blocks(out.size(), [&](const double* values, size_t count) {
    if (count == kBlock) {
      unit.floats(values, deviation, mean, to, count);
      to += count;
      return;
    }
    float last[kBlock];
    unit.floats(values, deviation, mean, last, whole_lanes(count));
    to = std::copy_n(last, count, to);
  });
}

}  // namespace fullbore
