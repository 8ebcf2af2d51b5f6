#include "fullbore/device/cpu/convolution/planes.h"

#include <algorithm>

namespace fullbore::cpu {
namespace {

// Of a block's planes: they stay in the second cache beside weights and sums.
constexpr int64_t kBlockBytes = 512 << 10;

Planes::Rows within(int64_t first, int64_t count, int64_t before, int64_t extent) {
  const int64_t begin = std::clamp<int64_t>(before - first, 0, count);
  const int64_t end = std::clamp<int64_t>(extent + before - first, begin, count);
  return {begin, first + begin - before, end - begin};
}

}  // namespace

bool Planes::serve(const ConvGeometry& g) {
  const ConvAxis& idle = g.axes[0];
  if (idle.input != 1 || idle.output != 1 || idle.kernel != 1 || idle.before != 0) return false;
  return std::ranges::all_of(g.axes, [](const ConvAxis& axis) {
    return axis.stride == 1 && axis.input_dilation == 1 && axis.input > 0;
  });
}

Planes::Planes(const ConvGeometry& g, int64_t bytes) : rows_(g.axes[1]), columns_(g.axes[2]) {
  reach_ = rows_.dilation * (rows_.kernel - 1);
  width_ = columns_.output + columns_.dilation * (columns_.kernel - 1);
  const int64_t fit = kBlockBytes / std::max<int64_t>(1, bytes * width_) - reach_;
  const int64_t most = std::clamp<int64_t>(fit, std::min<int64_t>(4, rows_.output), rows_.output);
  const int64_t blocks = (rows_.output + most - 1) / most;
  block_rows_ = (rows_.output + blocks - 1) / blocks;
  for (int64_t a = 0; a < rows_.kernel; ++a)
    for (int64_t b = 0; b < columns_.kernel; ++b)
      offsets_.push_back(a * rows_.dilation * width_ + b * columns_.dilation);
}

PlaneBlock Planes::block(int64_t index) const {
  const int64_t first = index * block_rows_;
  return {first, std::min(block_rows_, rows_.output - first)};
}

Planes::Rows Planes::rows_of(const PlaneBlock& plane_block) const {
  return within(plane_block.first, plane_block.count + reach_, rows_.before, rows_.input);
}
Planes::Rows Planes::columns() const { return within(0, width_, columns_.before, columns_.input); }

}  // namespace fullbore::cpu
