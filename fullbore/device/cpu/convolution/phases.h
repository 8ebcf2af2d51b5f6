#pragma once
#include <array>
#include <vector>

#include "fullbore/ops/convolution_geometry.h"

namespace fullbore::cpu {

/// An element of the kernel along one axis, and where it reads: output i of a phase reads input i * step + shift.
struct KernelRead {
  int64_t k = 0;
  int64_t shift = 0;
};

/// Every d-th output of an axis, where d is the dilation of its input: they meet the same elements of the kernel.
struct AxisPhase {
  int64_t first = 0;  ///< output i of the phase is output first + i * apart
  int64_t apart = 1;
  int64_t count = 0;
  int64_t step = 1;
  std::vector<KernelRead> reads;
};

/// An element of the kernel in three axes: its flat index, and shifts.
struct PhaseRead {
  int64_t k = 0;
  std::array<int64_t, 3> shift{};
};

struct Phase {
  std::array<AxisPhase, 3> axes;
  std::vector<PhaseRead> reads;
  int64_t positions() const { return axes[0].count * axes[1].count * axes[2].count; }
  bool apart() const { return axes[0].apart * axes[1].apart * axes[2].apart > 1; }
};

/// Does each output read the input at its own position and no other?
bool reads_own_positions(const ConvGeometry& geometry);
/// A geometry of three axes, the first of which may be idle; where a kernel of one element moves over all of the input,
/// one axis, unless not `joined`.
ConvGeometry in_three_axes(ConvGeometry geometry, bool joined = true);
/// The phases that have outputs, of a geometry of three axes.
std::vector<Phase> phases_of(const ConvGeometry& geometry);

/// The outputs [begin, end) among [first, first + count) that read within [0, extent) by i * step + shift.
struct ReadRange {
  int64_t begin, end;
};
ReadRange reads_within(int64_t first, int64_t count, int64_t step, int64_t shift, int64_t extent);

}  // namespace fullbore::cpu
