#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

// Columns of one item.
constexpr int64_t kColumns = 32;

/// a [batch, m, k] few rows, b [batch, n, k]: an item makes all rows of some columns. A matmul with
/// one column is that of its transposes, with one row: `a` and `b` say which operand is which.
template <class T>
class DotMatmul final : public CpuKernel {
 public:
  DotMatmul(const Contraction& c, VectorUnit unit, const GemmUnit<T>& loops)
      : c_(c.n == 1 ? with_one_row(c) : c),
        a_(c.n == 1 ? 1 : 0),
        loops_(loops),
        columns_{c_.n, kColumns},
        text_(fmt::format("matmul {} dot {}", vector_unit_name(unit), c.text())) {}

  int64_t items() const override { return c_.m == 0 ? 0 : c_.batch * columns_.parts(); }
  // Bound by reading b.
  double nanoseconds() const override {
    const double bytes = static_cast<double>(c_.batch * c_.n * c_.k * dtype_bytes(c_.in));
    return std::max(bytes / kBytesPerNanosecond, 2 * c_.flops() / loops_.flops_per_nanosecond);
  }
  // Widened rows of a, and a tile of the result before it is rounded.
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    char* scratch =
        worker_bytes() > 0 ? static_cast<char*>(buffers[3]) + worker_bytes() * worker : nullptr;
    const T* a = nullptr;
    int64_t batch_of_a = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t batch = item / columns_.parts();
      if (batch != batch_of_a) a = rows_of_a(buffers[a_], batch, reinterpret_cast<T*>(scratch));
      batch_of_a = batch;
      run_columns(buffers, a, batch, item % columns_.parts(), scratch + a_bytes());
    }
  }

 private:
  static Contraction with_one_row(Contraction c) {
    std::swap(c.m, c.n);
    return c;
  }
  bool native() const { return dtype_bytes(c_.in) == static_cast<int64_t>(sizeof(T)); }
  bool direct() const { return dtype_bytes(c_.out) == static_cast<int64_t>(sizeof(T)); }
  int64_t a_bytes() const {
    return native() ? 0 : round_up(c_.m * c_.k * static_cast<int64_t>(sizeof(T)), 64);
  }
  int64_t worker_bytes() const {
    return a_bytes() + (direct() ? 0 : c_.m * kColumns * static_cast<int64_t>(sizeof(T)));
  }

  const T* rows_of_a(const void* a, int64_t batch, T* scratch) const {
    const char* rows = static_cast<const char*>(a) + batch * c_.m * c_.k * dtype_bytes(c_.in);
    if (native()) return reinterpret_cast<const T*>(rows);
    loops_.copy_rows({rows, c_.in, c_.k, c_.m, c_.k}, scratch, c_.k);
    return scratch;
  }

  void run_columns(void* const* buffers, const T* a, int64_t batch, int64_t part,
                   char* scratch) const {
    const int64_t first = columns_.begin(part);
    const int64_t count = columns_.end(part) - first;
    const char* b = static_cast<const char*>(buffers[1 - a_]) +
                    (batch * c_.n + first) * c_.k * dtype_bytes(c_.in);
    char* y = static_cast<char*>(buffers[2]) + (batch * c_.m * c_.n + first) * dtype_bytes(c_.out);
    T* sums = reinterpret_cast<T*>(direct() ? y : scratch);
    const int64_t stride = direct() ? c_.n : count;
    loops_.dot({c_.m, count, c_.k, a, c_.k, b, c_.in, c_.k, sums, stride});
    if (!direct()) loops_.round(sums, stride, y, c_.n, c_.out, c_.m, count);
  }

  Contraction c_;
  size_t a_;
  const GemmUnit<T>& loops_;
  Blocks columns_;
  std::string text_;
};

template <class T>
std::unique_ptr<Kernel> make(const Contraction& c, VectorUnit unit) {
  const GemmUnit<T>* loops = gemm_unit<T>(unit);
  return loops ? std::make_unique<DotMatmul<T>>(c, unit, *loops) : nullptr;
}

}  // namespace

std::unique_ptr<Kernel> make_dot_matmul(const Contraction& c, VectorUnit unit) {
  return c.in == DType::f64 ? make<double>(c, unit) : make<float>(c, unit);
}

std::unique_ptr<Kernel> make_dot_matmul(KernelRequest& request) {
  const Contraction c = Contraction::of(request);
  if (c.one_chain) return request.decline("many rows are summed in another order");
  const bool a_lies_in_depth = !c.transpose_a || c.m == 1;
  const bool b_lies_in_depth = c.transpose_b || c.n == 1;
  if (!a_lies_in_depth || !b_lies_in_depth)
    return request.decline(
        fmt::format("{} is not contiguous along the contracted axis", a_lies_in_depth ? "b" : "a"));
  if (c.m > kMostDotRows && c.n > 1)
    return request.decline(fmt::format("{} rows are more than {}", c.m, kMostDotRows));
  return make_dot_matmul(c, this_processor().vector_unit);
}

}  // namespace fullbore::cpu
