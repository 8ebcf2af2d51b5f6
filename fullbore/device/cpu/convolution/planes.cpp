#include "fullbore/device/cpu/convolution/planes.h"

#include <algorithm>

#include "fullbore/device/cpu/convolution/phases.h"

namespace fullbore::cpu {
namespace {

// Of a block's planes: they stay in the second cache beside weights and sums.
constexpr int64_t kBlockBytes = 512 << 10;

}  // namespace

bool Planes::serve(const ConvGeometry& g) {
  return std::ranges::all_of(g.axes, [](const ConvAxis& axis) {
    return axis.input_dilation == 1 && axis.input > 0 && axis.kernel > 0;
  });
}

bool Planes::serve_by_one(const ConvGeometry& g) {
  const ConvAxis& idle = g.axes[0];
  if (idle.input != 1 || idle.output != 1 || idle.kernel != 1 || idle.before != 0) return false;
  return serve(g) &&
         std::ranges::all_of(g.axes, [](const ConvAxis& axis) { return axis.stride == 1; });
}

Planes::Axis::Axis(const ConvAxis& axis)
    : input(axis.input),
      output(axis.output),
      kernel(axis.kernel),
      stride(axis.stride),
      before(axis.before),
      dilation(axis.dilation) {
  for (int64_t k = 0; k < kernel; ++k) {
    reach = std::max(reach, shift(k));
    if (std::ranges::find(remainders, k * dilation % stride) == remainders.end())
      remainders.push_back(k * dilation % stride);
  }
}

int64_t Planes::Axis::plane(int64_t k) const {
  return std::ranges::find(remainders, k * dilation % stride) - remainders.begin();
}

Planes::Rows Planes::Axis::within(int64_t first, int64_t count, int64_t remainder) const {
  const int64_t shift = first * stride + remainder - before;
  const ReadRange range = reads_within(0, count, stride, shift, input);
  return {range.begin, range.begin * stride + shift, range.end - range.begin};
}

Planes::Planes(const ConvGeometry& g, int64_t bytes)
    : rows_(g.axes[1]), columns_(g.axes[2]), slices_(g.axes[0].kernel) {
  width_ = columns_.output + columns_.reach;
  const int64_t row = slices_ * bytes * width_ *
                      static_cast<int64_t>(rows_.remainders.size() * columns_.remainders.size());
  const int64_t fit = kBlockBytes / std::max<int64_t>(1, row) - rows_.reach;
  const int64_t most = std::clamp<int64_t>(fit, std::min<int64_t>(4, rows_.output), rows_.output);
  const int64_t blocks = (rows_.output + most - 1) / most;
  block_rows_ = (rows_.output + blocks - 1) / blocks;
  const auto planes_across = static_cast<int64_t>(columns_.remainders.size());
  const auto planes_down = static_cast<int64_t>(rows_.remainders.size());
  for (int64_t slice = 0; slice < slices_; ++slice)
    for (int64_t a = 0; a < rows_.kernel; ++a)
      for (int64_t b = 0; b < columns_.kernel; ++b) {
        const int64_t plane =
            (slice * planes_down + rows_.plane(a)) * planes_across + columns_.plane(b);
        offsets_.push_back(plane * plane_elements() + rows_.shift(a) * width_ + columns_.shift(b));
      }
}

PlaneBlock Planes::block(int64_t index) const {
  const int64_t first = index * block_rows_;
  return {first, std::min(block_rows_, rows_.output - first)};
}

Planes::Rows Planes::rows_of(const PlaneBlock& plane_block, int64_t remainder) const {
  return rows_.within(plane_block.first, plane_block.count + rows_.reach, remainder);
}
Planes::Rows Planes::columns(int64_t remainder) const {
  return columns_.within(0, width_, remainder);
}

}  // namespace fullbore::cpu
