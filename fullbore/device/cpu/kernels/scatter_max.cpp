#include "fullbore/device/cpu/kernels/scatter_max.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

// NaN counts as the largest.
template <class T>
bool exceeds(T update, T most) {
  const auto a = ordered(update), b = ordered(most);
  if constexpr (std::is_integral_v<T>)
    return a > b;
  else
    return b == b && !(a <= b);
}

/// x [outer, extent, inner], updates and indices [outer, count, inner] -> y as x.
template <class T, class Index>
class ScatterMax final : public CpuKernel {
 public:
  ScatterMax(const Axis& x, const Axis& updates, std::string text)
      : x_(x),
        updates_(updates),
        outer_{x.outer, std::max<int64_t>(1, kItemBytes / std::max<int64_t>(1, row_bytes()))},
        text_(std::move(text)) {}

  int64_t items() const override { return outer_.parts(); }
  double nanoseconds() const override {
    return static_cast<double>(x_.outer * row_bytes()) / kBytesPerNanosecond;
  }
  bool may_alias(int input, int) const override { return input == 0; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const override {
    const T* x = static_cast<const T*>(buffers[0]);
    T* y = static_cast<T*>(buffers[3]);
    const int64_t row = x_.extent * x_.inner, updates = updates_.extent * updates_.inner;
    for (int64_t o = outer_.begin(begin); o < outer_.end(end - 1); ++o) {
      if (x != y) std::copy_n(x + o * row, row, y + o * row);
      take(static_cast<const T*>(buffers[1]) + o * updates,
           static_cast<const Index*>(buffers[2]) + o * updates, y + o * row);
    }
  }

 private:
  int64_t row_bytes() const {
    return (x_.extent + 2 * updates_.extent) * x_.inner * static_cast<int64_t>(sizeof(T));
  }
  void take(const T* updates, const Index* indices, T* y) const {
    for (int64_t i = 0; i < updates_.extent; ++i)
      for (int64_t n = 0; n < x_.inner; ++n) {
        const auto index =
            static_cast<int64_t>(indices[i * x_.inner + n]);  // NOLINT(bugprone-signed-char-misuse)
        if (index < 0 || index >= x_.extent) continue;
        T& most = y[index * x_.inner + n];
        const T update = updates[i * x_.inner + n];
        if (exceeds(update, most)) most = update;
      }
  }

  Axis x_, updates_;
  Blocks outer_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_scatter_max(KernelRequest& request) {
  const auto axis = request.attribute<int64_t>("axis");
  return with_numeric(request.input(0).dtype, [&](auto element) {
    return with_index(request.input(2).dtype, [&](auto index) -> std::unique_ptr<Kernel> {
      return std::make_unique<ScatterMax<decltype(element), decltype(index)>>(
          Axis(request.input(0).shape, axis), Axis(request.input(1).shape, axis),
          fmt::format("scatter_max {} {}", request.input(0).text(), request.input(1).text()));
    });
  });
}

}  // namespace fullbore::cpu
