#include "fullbore/device/cpu/quant/quantized_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

// Rows of an item: that many share a reading of the weights, from the second-level cache.
constexpr int64_t kRows = 64;

class QuantizedLinear final : public CpuKernel {
 public:
  QuantizedLinear(const KernelRequest& request, const Int8Unit& unit)
      : unit_(unit),
        widening_(*gemm_unit<float>(this_processor().vector_unit)),
        x_(request.input(0).dtype),
        scale_(request.input(2).dtype),
        columns_(request.input(1).shape[0]),
        depth_(request.input(1).shape[1]),
        rows_{request.input(0).elements() / depth_, kRows},
        parts_{columns_, round_up(std::clamp<int64_t>(kItemBytes / depth_, 8, 512), 8)},
        text_(fmt::format("quantized_linear {} {} [{}x{}x{}]", unit.name, dtype_name(x_),
                          rows_.count, columns_, depth_)) {}

  int64_t items() const override { return rows_.parts() * parts_.parts(); }
  double nanoseconds() const override {
    const auto weights = static_cast<double>(columns_ * depth_);
    return std::max(weights / kBytesPerNanosecond, 2 * static_cast<double>(rows_.count) * weights /
                                                       unit_.operations_per_nanosecond);
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[4]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    int64_t rounded = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t part = item / parts_.parts();
      if (part != rounded) round_rows(buffers[0], part, w);
      rounded = part;
      multiply(buffers, part, item % parts_.parts(), w);
    }
  }

 private:
  struct Workspace {
    char* q;            // rounded rows and, behind them, one of nothing but the bias
    float* row_scales;  // of them
    float* column_scales;
    float* row;     // widened
    float* result;  // before it is rounded

    Workspace(const QuantizedLinear& k, Scratch& scratch) {
      const int64_t rows = std::min(k.rows_.count, kRows);
      q = scratch.take<char>((rows + 1) * k.unit_.row_bytes(k.depth_));
      row_scales = scratch.take<float>(rows);
      column_scales = k.scale_ == DType::f32 ? nullptr : scratch.take<float>(k.parts_.size);
      row = k.x_ == DType::f32 ? nullptr : scratch.take<float>(k.depth_);
      result = k.x_ == DType::f32 ? nullptr : scratch.take<float>(rows * k.parts_.size);
    }
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  static const char* at(const void* data, DType dtype, int64_t element) {
    return static_cast<const char*>(data) + element * dtype_bytes(dtype);
  }

  void round_rows(const void* x, int64_t part, const Workspace& w) const {
    const int64_t row_bytes = unit_.row_bytes(depth_);
    const int64_t count = rows_.end(part) - rows_.begin(part);
    for (int64_t i = 0; i < count; ++i) {
      const char* from = at(x, x_, (rows_.begin(part) + i) * depth_);
      if (w.row) widening_.copy_rows({from, x_, depth_, 1, depth_}, w.row, depth_);
      const float* row = w.row ? w.row : reinterpret_cast<const float*>(from);
      w.row_scales[i] = unit_.quantize(row, depth_, w.q + i * row_bytes);
    }
    if (unit_.bias != 0)
      std::memset(w.q + count * row_bytes, unit_.bias, static_cast<size_t>(row_bytes));
  }

  void multiply(void* const* buffers, int64_t row_part, int64_t part, const Workspace& w) const {
    const int64_t first = parts_.begin(part), columns = parts_.end(part) - first;
    const int64_t row = rows_.begin(row_part), rows = rows_.end(row_part) - row;
    const char* scales = at(buffers[2], scale_, first);
    if (w.column_scales)
      widening_.copy_rows({scales, scale_, columns, 1, columns}, w.column_scales, columns);
    char* y = static_cast<char*>(buffers[3]) + (row * columns_ + first) * dtype_bytes(x_);
    const int64_t y_row = w.result ? columns : columns_;
    float* to = w.result ? w.result : reinterpret_cast<float*>(y);
    unit_.multiply({.rows = rows,
                    .columns = columns,
                    .depth = depth_,
                    .x = w.q,
                    .row_scales = w.row_scales,
                    .weight = static_cast<const int8_t*>(buffers[1]) + first * depth_,
                    .column_scales =
                        w.column_scales ? w.column_scales : reinterpret_cast<const float*>(scales),
                    .y = to,
                    .y_row = y_row});
    if (w.result) widening_.round(to, y_row, y, columns_, x_, rows, columns);
  }

  const Int8Unit& unit_;
  const GemmUnit<float>& widening_;
  DType x_;
  DType scale_;
  int64_t columns_;
  int64_t depth_;
  Blocks rows_;
  Blocks parts_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_quantized_linear(const KernelRequest& request, const Int8Unit& unit) {
  return std::make_unique<QuantizedLinear>(request, unit);
}

std::unique_ptr<Kernel> make_quantized_linear(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("needs x of at most 32 bits");
  return make_quantized_linear(request, *int8_units().front());
}

}  // namespace fullbore::cpu
