#include "fullbore/device/cpu/convolution/phases.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

AxisPhase axis_phase(const ConvAxis& axis, int64_t first) {
  AxisPhase phase{.first = first,
                  .apart = axis.input_dilation,
                  .count = (axis.output - first + axis.input_dilation - 1) / axis.input_dilation,
                  .step = axis.input_dilation > 1 ? 1 : axis.stride,
                  .reads = {}};
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t at = first - axis.before + k * axis.dilation;
    if (at % axis.input_dilation == 0) phase.reads.push_back({k, at / axis.input_dilation});
  }
  return phase;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

bool reads_own_positions(const ConvGeometry& geometry) {
  return std::ranges::all_of(geometry.axes, [](const ConvAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.input_dilation == 1 &&
           axis.input == axis.output;
  });
}

ConvGeometry in_three_axes(ConvGeometry geometry, bool joined) {
  if (joined && reads_own_positions(geometry)) {
    ConvAxis all;
    all.input = all.output = geometry.input_elements();
    geometry.axes = {all};
  }
  while (geometry.axes.size() < 3) geometry.axes.insert(geometry.axes.begin(), ConvAxis{});
  return geometry;
}

std::vector<Phase> phases_of(const ConvGeometry& geometry) {
  const ConvAxis &a = geometry.axes[0], &b = geometry.axes[1], &c = geometry.axes[2];
  std::vector<Phase> phases;
  for (int64_t i = 0; i < std::min(a.input_dilation, a.output); ++i)
    for (int64_t j = 0; j < std::min(b.input_dilation, b.output); ++j)
      for (int64_t l = 0; l < std::min(c.input_dilation, c.output); ++l) {
        Phase phase{.axes = {axis_phase(a, i), axis_phase(b, j), axis_phase(c, l)}, .reads = {}};
        for (const KernelRead& ra : phase.axes[0].reads)
          for (const KernelRead& rb : phase.axes[1].reads)
            for (const KernelRead& rc : phase.axes[2].reads)
              phase.reads.push_back(
                  {(ra.k * b.kernel + rb.k) * c.kernel + rc.k, {ra.shift, rb.shift, rc.shift}});
        phases.push_back(std::move(phase));
      }
  return phases;
}

ReadRange reads_within(int64_t first, int64_t count, int64_t step, int64_t shift, int64_t extent) {
  const int64_t begin = -floor_div(shift, step);         // least i with i * step + shift >= 0
  const int64_t end = -floor_div(shift - extent, step);  // least i with i * step + shift >= extent
  const int64_t from = std::clamp(begin, first, first + count);
  return {from, std::clamp(end, from, first + count)};
}

}  // namespace fullbore::cpu
