#include "fullbore/device/cpu/gemm/amx_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kTile = 16;
constexpr int64_t kLine = 64;
constexpr int64_t kBf16 = 2;
constexpr int64_t kPair = 4;

/// An item is a block of columns of the result, all rows of it.
class AmxMatmul final : public CpuKernel {
 public:
  AmxMatmul(const Contraction& c, const GemmUnit<VnniPair>& unit)
      : c_(c), unit_(unit), rows_(round_up(c.m, kTile)), blocks_{c.n, kAmxColumns} {
    for (int64_t depth = 0; depth < c.k; depth += kAmxDepth)
      steps_.push_back({depth * kBf16, depth / 2 * kAmxColumns * kPair});
    // Each pair of rows of tiles asks for its part of the next block.
    const int64_t lines = block_bytes() / kLine;
    const auto passes = divide_up(rows_, 2 * kTile) * static_cast<int64_t>(steps_.size());
    asks_ = static_cast<int>(divide_up(lines, std::max<int64_t>(1, passes)));
  }

  int64_t items() const override { return c_.m == 0 ? 0 : blocks_.parts(); }
  double nanoseconds() const override {
    constexpr double kFlopsPerNanosecond = 800;
    const auto bytes = static_cast<double>(blocks_.parts() * block_bytes());
    return std::max(bytes / kBytesPerNanosecond, c_.flops() / kFlopsPerNanosecond);
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return "matmul amx " + c_.text(); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[3]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    const auto* a = static_cast<const char*>(buffers[0]);
    if (rows_ != c_.m) {
      const int64_t bytes = c_.m * c_.k * kBf16;
      std::memcpy(w.a, a, static_cast<size_t>(bytes));
      std::memset(w.a + bytes, 0, static_cast<size_t>(rows_ * c_.k * kBf16 - bytes));
      a = w.a;
    }
    const AmxTiles tiles;
    for (int64_t block = begin; block < end; ++block) {
      const char* b = static_cast<const char*>(buffers[1]) + block * block_bytes();
      Prefetcher next;
      if (block + 1 < end) next.add(b + block_bytes(), 1, block_bytes(), block_bytes());
      tiles.multiply({.rows = rows_,
                      .columns = kAmxColumns,
                      .steps = steps_,
                      .a = a,
                      .a_row = c_.k * kBf16,
                      .b = b,
                      .b_row = kAmxColumns * kPair,
                      .c = w.sums,
                      .c_row = kAmxColumns,
                      .prefetcher = &next,
                      .asks = next.more() ? asks_ : 0});
      give(w.sums, buffers[2], block);
    }
  }

 private:
  struct Workspace {
    char* a;      ///< its rows and zeros, where it has no whole tiles of them
    float* sums;  ///< of a block
    Workspace(const AmxMatmul& kernel, Scratch& scratch) {
      const int64_t elements = kernel.rows_ == kernel.c_.m ? 0 : kernel.rows_ * kernel.c_.k;
      a = scratch.take<char>(elements * kBf16);
      sums = scratch.take<float>(kernel.rows_ * kAmxColumns);
    }
  };

  int64_t block_bytes() const { return c_.k / 2 * kAmxColumns * kPair; }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  void give(const float* sums, void* y, int64_t block) const {
    const int64_t column = blocks_.begin(block), width = blocks_.end(block) - column;
    char* to = static_cast<char*>(y) + column * dtype_bytes(c_.out);
    if (c_.out == DType::f32)
      for (int64_t row = 0; row < c_.m; ++row)
        std::copy_n(sums + row * kAmxColumns, width, reinterpret_cast<float*>(to) + row * c_.n);
    else
      unit_.round(sums, kAmxColumns, to, c_.n, c_.out, c_.m, width);
  }

  Contraction c_;
  const GemmUnit<VnniPair>& unit_;
  int64_t rows_;   ///< in whole tiles
  Blocks blocks_;  ///< of columns
  std::vector<AmxStep> steps_;
  int asks_ = 0;  ///< lines of the next block, a step
};

}  // namespace

std::unique_ptr<Kernel> make_amx_matmul(const Contraction& c, std::string* why_not) {
  const auto decline = [&](std::string why) {
    *why_not = std::move(why);
    return nullptr;
  };
  const GemmUnit<VnniPair>* const unit = gemm_unit<VnniPair>(VectorUnit::avx512);
  if (!this_processor().amx_bf16 || !unit) return decline("this processor has no tiles for bf16");
  if (c.in != DType::bf16 || !c.vnni) return decline("needs VNNI pairs of bf16");
  if (c.out != DType::bf16 && c.out != DType::f32)
    return decline(fmt::format("sums are not rounded to {}", dtype_name(c.out)));
  if (c.block_columns != kAmxColumns)
    return decline(fmt::format("blocks of {} columns, not of {}", c.block_columns, kAmxColumns));
  if (c.batch != 1 || c.transpose_a || c.add || c.one_chain)
    return decline("needs one matrix, and rows as they lie");
  if (c.k == 0 || c.k % kAmxDepth != 0)
    return decline(fmt::format("a depth of {} is no multiple of {}", c.k, kAmxDepth));
  return std::make_unique<AmxMatmul>(c, *unit);
}

std::unique_ptr<Kernel> make_amx_matmul(KernelRequest& request) {
  std::string why_not;
  if (auto kernel = make_amx_matmul(Contraction::of(request), &why_not)) return kernel;
  return request.decline(why_not);
}

}  // namespace fullbore::cpu
