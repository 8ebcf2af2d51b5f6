#include "fullbore/device/cpu/kernels/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

/// x [rows, width], indices [count] -> y [count, width]: an item copies some rows of y.
template <class Index>
class GatherKernel final : public CpuKernel {
 public:
  GatherKernel(const TensorType& x, const TensorType& indices)
      : rows_(x.shape[0]),
        row_bytes_(x.shape.slice(1, x.shape.rank()).elements() * dtype_bytes(x.dtype)),
        blocks_{row_bytes_ > 0 ? indices.elements() : 0,
                std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, row_bytes_))},
        text_(fmt::format("gather {} [{}]", x.text(), indices.elements())) {}

  int64_t items() const override { return blocks_.parts(); }
  double nanoseconds() const override {
    return static_cast<double>(blocks_.count * (2 * row_bytes_ + 16)) / kBytesPerNanosecond;
  }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const override {
    const auto* x = static_cast<const char*>(buffers[0]);
    const auto* indices = static_cast<const Index*>(buffers[1]);
    auto* y = static_cast<char*>(buffers[2]);
    for (int64_t i = blocks_.begin(begin); i < blocks_.end(end - 1); ++i) {
      const auto row =
          static_cast<int64_t>(indices[i]);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
      if (row >= 0 && row < rows_)
        copy_bytes(y + i * row_bytes_, x + row * row_bytes_, row_bytes_);
      else
        std::memset(y + i * row_bytes_, 0, static_cast<size_t>(row_bytes_));
    }
  }

 private:
  int64_t rows_;
  int64_t row_bytes_;
  Blocks blocks_;
  std::string text_;
};

/// y[o, i, n] = x[o, indices[o, i, n], n]: an item makes some rows (o, i) of y.
template <class Index, class Bits>
class TakeAlongAxisKernel final : public CpuKernel {
 public:
  TakeAlongAxisKernel(const TensorType& x, const TensorType& indices, int64_t axis)
      : source_(x.shape, axis),
        view_(indices.shape, axis),
        blocks_{view_.inner > 0 ? view_.outer * view_.extent : 0,
                std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, view_.inner * kBytes))},
        text_(fmt::format("take_along_axis {} {}", x.text(), indices.shape.text())) {}

  int64_t items() const override { return blocks_.parts(); }
  // Each element is a dependent load somewhere else.
  double nanoseconds() const override { return static_cast<double>(view_.elements()) * 1.5; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const override {
    const auto* x = static_cast<const Bits*>(buffers[0]);
    const auto* indices = static_cast<const Index*>(buffers[1]);
    auto* y = static_cast<Bits*>(buffers[2]);
    for (int64_t row = blocks_.begin(begin); row < blocks_.end(end - 1); ++row) {
      const Bits* from = x + row / view_.extent * source_.extent * source_.inner;
      for (int64_t n = 0; n < view_.inner; ++n) {
        const auto index = static_cast<int64_t>(
            indices[row * view_.inner + n]);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
        const bool inside = index >= 0 && index < source_.extent;
        y[row * view_.inner + n] = inside ? from[index * source_.inner + n] : Bits{0};
      }
    }
  }

 private:
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(Bits) + sizeof(Index));
  Axis source_;
  Axis view_;
  Blocks blocks_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(KernelRequest& request) {
  return with_index(request.input(1).dtype, [&](auto index) -> std::unique_ptr<Kernel> {
    return std::make_unique<GatherKernel<decltype(index)>>(request.input(0), request.input(1));
  });
}

std::unique_ptr<Kernel> make_take_along_axis(KernelRequest& request) {
  return with_index(request.input(1).dtype, [&](auto index) {
    return with_bits(request.input(0).dtype, [&](auto bits) -> std::unique_ptr<Kernel> {
      return std::make_unique<TakeAlongAxisKernel<decltype(index), decltype(bits)>>(
          request.input(0), request.input(1), request.attribute<int64_t>("axis"));
    });
  });
}

}  // namespace fullbore::cpu
