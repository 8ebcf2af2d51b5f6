#include "fullbore/device/cpu/kernels/gather_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

// Columns that are summed at a time, in registers or nearly so.
constexpr int64_t kColumns = 64;

/// What copies and sums have in common: x [C, width], indices [R, most], inverse, [count, inverse_count] -> y [R, width].
/// An item makes some rows of y.
class GatherSumKernel : public CpuKernel {
 public:
  explicit GatherSumKernel(const KernelRequest& request)
      : from_(request.input(0).shape[0]),
        most_(request.input(1).shape[1]),
        width_(request.input(0).shape.slice(1, request.input(0).shape.rank()).elements()),
        row_bytes_(width_ * dtype_bytes(request.input(0).dtype)),
        counted_(request.node().inputs.size() > 3),
        rows_{width_ > 0 ? request.input(1).shape[0] : 0,
              std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, row_bytes_))},
        text_(fmt::format("gather_sum {} {}", request.input(0).text(),
                          request.input(1).shape.text())) {}

  int64_t items() const override { return rows_.parts(); }
  double nanoseconds() const override {
    return static_cast<double>(rows_.count * ((most_ + 1) * row_bytes_ + 8 * most_ + 8)) /
           kBytesPerNanosecond;
  }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const final {
    const auto count = [&](size_t operand, int64_t rows) {
      if (!counted_) return rows;
      return std::clamp<int64_t>(*static_cast<const int64_t*>(buffers[operand]), 0, rows);
    };
    const int64_t last = std::min(rows_.end(end - 1), count(3, rows_.count));
    const int64_t there = count(4, from_);
    const auto* indices = static_cast<const int32_t*>(buffers[1]);
    char* y = static_cast<char*>(buffers[counted_ ? 5 : 3]);
    for (int64_t row = rows_.begin(begin); row < last; ++row)
      make_row(static_cast<const char*>(buffers[0]), there, indices + row * most_,
               y + row * row_bytes_);
  }

 protected:
  /// One row of y from the rows of x below `there`.
  virtual void make_row(const char* x, int64_t there, const int32_t* indices, char* y) const = 0;

  int64_t most() const { return most_; }
  int64_t width() const { return width_; }
  int64_t row_bytes() const { return row_bytes_; }

 private:
  int64_t from_;
  int64_t most_;
  int64_t width_;
  int64_t row_bytes_;
  bool counted_;
  Blocks rows_;
  std::string text_;
};

class CopyRows final : public GatherSumKernel {
 public:
  using GatherSumKernel::GatherSumKernel;

 protected:
  void make_row(const char* x, int64_t there, const int32_t* indices, char* y) const override {
    const int64_t row = indices[0];
    if (row >= 0 && row < there)
      copy_bytes(y, x + row * row_bytes(), row_bytes());
    else
      std::memset(y, 0, static_cast<size_t>(row_bytes()));
  }
};

template <class T>
class SumRows final : public GatherSumKernel {
 public:
  using GatherSumKernel::GatherSumKernel;

 protected:
  void make_row(const char* x, int64_t there, const int32_t* indices, char* y) const override {
    for (int64_t first = 0; first < width(); first += kColumns) {
      const int64_t columns = std::min(kColumns, width() - first);
      std::array<Sum<T>, kColumns> sums;
      std::fill_n(sums.begin(), columns, Sum<T>{0});
      for (int64_t k = 0; k < most(); ++k) {
        const int64_t row = indices[k];
        if (row < 0 || row >= there) continue;
        const T* terms = reinterpret_cast<const T*>(x + row * row_bytes()) + first;
        for (int64_t n = 0; n < columns; ++n) sums[static_cast<size_t>(n)] += load(terms[n]);
      }
      T* to = reinterpret_cast<T*>(y) + first;
      for (int64_t n = 0; n < columns; ++n) to[n] = store<T>(sums[static_cast<size_t>(n)]);
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_gather_sum(KernelRequest& request) {
  if (request.input(1).shape[1] == 1) return std::make_unique<CopyRows>(request);
  return with_numeric(request.input(0).dtype, [&](auto element) -> std::unique_ptr<Kernel> {
    return std::make_unique<SumRows<decltype(element)>>(request);
  });
}

}  // namespace fullbore::cpu
