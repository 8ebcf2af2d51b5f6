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

void PhiloxStream::normals(std::span<double> out) {
  const DrawUnit& unit = draw_units().front();
  uint64_t radius[kBlock];
  uint64_t angle[kBlock];
  double values[kBlock];
  for (; !out.empty(); out = out.subspan(std::min(kBlock, out.size()))) {
    const size_t count = std::min(kBlock, out.size());
    unit.bits(key_, stream_, position_, 2, radius, whole_lanes(count));
    unit.bits(key_, stream_, position_ + 1, 2, angle, whole_lanes(count));
    unit.normals(radius, angle, values, whole_lanes(count));
    std::copy_n(values, count, out.begin());
    position_ += 2 * count;
  }
}

}  // namespace fullbore
