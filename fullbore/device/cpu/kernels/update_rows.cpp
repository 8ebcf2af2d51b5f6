#include "fullbore/device/cpu/kernels/update_rows.h"

#include <fmt/format.h>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

/// x [rows, width], updates [count, width], indices [count] -> y [rows, width].
template <class Index>
class UpdateRowsKernel final : public CpuKernel {
 public:
  UpdateRowsKernel(const TensorType& x, const TensorType& indices)
      : rows_(x.shape[0]),
        row_bytes_(x.shape.slice(1, x.shape.rank()).elements() * dtype_bytes(x.dtype)),
        count_(indices.elements()),
        text_(fmt::format("update_rows {} [{}]", x.text(), count_)) {}

  int64_t items() const override { return rows_ * row_bytes_ > 0 ? 1 : 0; }
  double nanoseconds() const override {
    return static_cast<double>(count_ * (2 * row_bytes_ + 16)) / kBytesPerNanosecond;
  }
  bool may_alias(int input, int output) const override { return input == 0 && output == 0; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t, int64_t, int) const override {
    const auto* x = static_cast<const char*>(buffers[0]);
    const auto* updates = static_cast<const char*>(buffers[1]);
    const auto* indices = static_cast<const Index*>(buffers[2]);
    auto* y = static_cast<char*>(buffers[3]);
    if (x != y) copy_bytes(y, x, rows_ * row_bytes_);
    for (int64_t i = 0; i < count_; ++i) {
      const auto row = static_cast<int64_t>(indices[i]);  // NOLINT(bugprone-signed-char-misuse)
      if (row >= 0 && row < rows_)
        copy_bytes(y + row * row_bytes_, updates + i * row_bytes_, row_bytes_);
    }
  }

 private:
  int64_t rows_;
  int64_t row_bytes_;
  int64_t count_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_update_rows(KernelRequest& request) {
  return with_index(request.input(2).dtype, [&](auto index) -> std::unique_ptr<Kernel> {
    return std::make_unique<UpdateRowsKernel<decltype(index)>>(request.input(0), request.input(2));
  });
}

}  // namespace fullbore::cpu
