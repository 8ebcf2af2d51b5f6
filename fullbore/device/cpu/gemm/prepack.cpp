#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

// Operands of depth of one item: some 64 KiB of a block.
constexpr int64_t kDepth = 256;

/// x [batch, k, n], or [batch, n, k] if transposed, as [batch, blocks, depth, block] operands of type P: an
/// item is a part of the depth of one block.
template <class P>
class Prepack final : public CpuKernel {
 public:
  Prepack(const TensorType& x, const TensorType& y, bool transposed, const GemmUnit<P>& loops)
      : in_(x.dtype),
        transposed_(transposed),
        rows_(x.shape[x.shape.rank() - 2]),
        columns_(x.shape[x.shape.rank() - 1]),
        blocks_(y.shape[y.shape.rank() - 4]),
        block_columns_(y.shape[y.shape.rank() - 2]),
        batch_(x.shape.slice(0, x.shape.rank() - 2).elements()),
        depth_{y.shape[y.shape.rank() - 3], kDepth},
        loops_(loops),
        bytes_(static_cast<double>(x.bytes() + y.bytes())),
        text_(fmt::format("pack {}{}{} {} blocks of {}",
                          batch_ == 1 ? "" : fmt::format("{} x ", batch_), x.text(),
                          transposed ? "T" : "", blocks_, block_columns_)) {}

  int64_t items() const override { return batch_ * blocks_ * depth_.parts(); }
  double nanoseconds() const override { return bytes_ / kBytesPerNanosecond; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int) const override {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / depth_.parts();
      pack(buffers, block / blocks_, block % blocks_, item % depth_.parts());
    }
  }

 private:
  void pack(void* const* buffers, int64_t batch, int64_t block, int64_t part) const {
    const int64_t k = transposed_ ? columns_ : rows_;
    const int64_t n = transposed_ ? rows_ : columns_;
    const int64_t first = depth_.begin(part), operands = depth_.end(part) - first;
    const int64_t row = first * kDepthOf<P>;
    const int64_t depth = std::min(operands * kDepthOf<P>, k - row);
    const int64_t column = block * block_columns_;
    const int64_t width = std::min(block_columns_, n - column);
    const int64_t at = batch * k * n + (transposed_ ? column * k + row : row * n + column);
    const char* from = static_cast<const char*>(buffers[0]) + at * dtype_bytes(in_);
    P* to = static_cast<P*>(buffers[1]) +
            ((batch * blocks_ + block) * depth_.count + first) * block_columns_;
    if (transposed_)
      loops_.copy_transposed({from, in_, columns_, width, depth}, to, block_columns_);
    else
      loops_.copy({from, in_, columns_, depth, width}, to, block_columns_);
    if (width == block_columns_) return;
    for (int64_t i = 0; i < operands; ++i)
      std::fill_n(to + i * block_columns_ + width, block_columns_ - width, P{});
  }

  DType in_;
  bool transposed_;
  int64_t rows_, columns_;  ///< of x as it lies
  int64_t blocks_, block_columns_;
  int64_t batch_;
  Blocks depth_;
  const GemmUnit<P>& loops_;
  double bytes_;
  std::string text_;
};

template <class P>
std::unique_ptr<Kernel> make(KernelRequest& request) {
  const GemmUnit<P>* loops = gemm_unit<P>(this_processor().vector_unit);
  if (!loops) return request.decline("this processor has no AVX512_BF16");
  return std::make_unique<Prepack<P>>(request.input(0), request.output(),
                                      request.attribute<bool>("transposed"), *loops);
}

}  // namespace

std::unique_ptr<Kernel> make_prepack(KernelRequest& request) {
  if (request.attribute<int64_t>("vnni") == 2) return make<VnniPair>(request);
  return request.input(0).dtype == DType::f64 ? make<double>(request) : make<float>(request);
}

}  // namespace fullbore::cpu
