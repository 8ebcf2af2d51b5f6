#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/ops/paged_attention.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Keys of a part of the scores, which the loops of tiles take at a time.
constexpr int64_t kPartKeys = kTileQueries;

/// An item is the queries of a row that share keys; what it computes depends on nothing else.
template <class Page>
class PagedRowsKernel final : public CpuKernel {
 public:
  PagedRowsKernel(const PagedAttentionShape& shape, const MatmulUnits& units)
      : shape_(shape),
        gemm_(*gemm_unit<float>(units.vector_unit)),
        loops_(tile_unit(units.vector_unit)),
        text_(fmt::format("paged attention {} f32 {} x {} heads of {}, {} places",
                          vector_unit_name(units.vector_unit), shape.rows, shape.heads, shape.width,
                          shape.places())) {}

  int64_t items() const override { return shape_.rows * shape_.groups; }
  double nanoseconds() const override {
    const auto places = static_cast<double>(shape_.rows * shape_.places());
    const auto numbers = 2 * places * static_cast<double>(shape_.groups * shape_.width);
    return numbers * sizeof(float) / kBytesPerNanosecond +
           places * static_cast<double>(shape_.heads * (4 * shape_.width + 100)) /
               gemm_.flops_per_nanosecond;
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[6]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    const auto* seen = static_cast<const int64_t*>(buffers[4]);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / shape_.groups;
      const int64_t last = std::clamp<int64_t>(seen[row], 0, shape_.places());
      // What a window leaves out: negative `seen` sees nothing, more than there are all.
      const int64_t first = shape_.window > 0 ? std::max<int64_t>(0, seen[row] - shape_.window) : 0;
      attend(buffers, item, std::min(first, last), last, w);
    }
  }

 private:
  struct Workspace {
    float *queries, *scores, *sums, *shift, *parts;
    Workspace(const PagedRowsKernel& kernel, Scratch& scratch) {
      queries = scratch.take<float>(kernel.row_elements());
      scores = scratch.take<float>(kernel.shape_.queries() * kernel.stride());
      sums = scratch.take<float>(kernel.row_elements());
      shift = scratch.take<float>(kPartKeys);
      parts = scratch.take<float>(kPartKeys);
    }
  };

  int64_t row_elements() const { return shape_.queries() * shape_.width; }
  /// Of the scores of a query: whole parts, and a page more, in which the first place may lie late.
  int64_t stride() const { return round_up(shape_.places() + shape_.page_tokens, kPartKeys); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  /// visit(number among them, row of the pool or -1, places of it) for each page with places of [first, last).
  template <class Visit>
  void for_each_page(void* const* buffers, int64_t row, int64_t first, int64_t last,
                     const Visit& visit) const {
    const auto* pages = static_cast<const Page*>(buffers[3]) + row * shape_.pages;
    const int64_t begin = first / shape_.page_tokens;
    for (int64_t page = begin; page * shape_.page_tokens < last; ++page) {
      const auto number = static_cast<int64_t>(pages[page]);
      const bool there = number >= 0 && (number + 1) * shape_.page_tokens <= shape_.pool;
      visit(page - begin, there ? number * shape_.page_tokens : -1,
            std::min(shape_.page_tokens, last - page * shape_.page_tokens));
    }
  }

  void attend(void* const* buffers, int64_t item, int64_t first, int64_t last,
              const Workspace& w) const {
    const int64_t row = item / shape_.groups, group = item % shape_.groups;
    const int64_t count = shape_.queries(), width = shape_.width;
    const int64_t pool_row = shape_.groups * width;
    auto* y = static_cast<float*>(buffers[5]) + item * row_elements();
    std::fill_n(y, row_elements(), 0.0F);
    if (first >= last) return;
    const auto* q = static_cast<const float*>(buffers[0]) + item * row_elements();
    const auto* keys = static_cast<const float*>(buffers[1]) + group * width;
    const auto* values = static_cast<const float*>(buffers[2]) + group * width;
    const auto scale = static_cast<float>(shape_.scale);
    for (int64_t i = 0; i < row_elements(); ++i) w.queries[i] = q[i] * scale;

    // Scores of whole pages, of which the places outside [first, last) are not seen.
    const int64_t skipped = first % shape_.page_tokens;
    const int64_t end = last - first + skipped, padded = round_up(end, kPartKeys);
    for_each_page(buffers, row, first, last, [&](int64_t number, int64_t at, int64_t places) {
      float* scores = w.scores + number * shape_.page_tokens;
      if (at < 0) {
        for (int64_t i = 0; i < count; ++i) std::fill_n(scores + i * stride(), places, 0.0F);
        return;
      }
      gemm_.dot({.rows = count,
                 .columns = places,
                 .depth = width,
                 .a = w.queries,
                 .a_row = width,
                 .b = keys + at * pool_row,
                 .b_dtype = DType::f32,
                 .b_column = pool_row,
                 .c = scores,
                 .c_row = stride()});
    });
    for (int64_t i = 0; i < count; ++i) {
      float* scores = w.scores + i * stride();
      std::fill_n(scores, skipped, -kInfinity);
      std::fill(scores + end, scores + padded, -kInfinity);
      const float most = *std::max_element(scores + skipped, scores + end);
      std::fill_n(w.shift, kPartKeys, most > -kInfinity ? most : 0.0F);
      std::fill_n(w.parts, kPartKeys, 0.0F);
      for (int64_t part = 0; part < padded; part += kPartKeys)
        loops_.exponentiate({scores + part, 1, kPartKeys}, w.shift, nullptr, w.parts, nullptr);
      w.sums[i] = 0;
      for (int64_t lane = 0; lane < kPartKeys; ++lane) w.sums[i] += w.parts[lane];
    }
    for_each_page(buffers, row, first, last, [&](int64_t number, int64_t at, int64_t places) {
      if (at < 0) return;
      const float* weights = w.scores + number * shape_.page_tokens;
      for (int64_t column = 0; column < width; column += gemm_.block_columns)
        gemm_.multiply({.rows = count,
                        .columns = std::min<int64_t>(gemm_.block_columns, width - column),
                        .depth = places,
                        .a = weights,
                        .a_row = stride(),
                        .b = values + at * pool_row + column,
                        .b_depth = pool_row,
                        .c = y + column,
                        .c_row = width,
                        .accumulate = true});
    });
    for (int64_t i = 0; i < count; ++i) {
      const float inverse = w.sums[i] > 0 ? 1 / w.sums[i] : 0;
      for (int64_t d = 0; d < width; ++d) y[i * width + d] *= inverse;
    }
  }

  PagedAttentionShape shape_;
  const GemmUnit<float>& gemm_;
  const TileUnit& loops_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_paged_attention(KernelRequest& request) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < request.node().inputs.size(); ++i) types.push_back(request.input(i));
  if (types[0].dtype != DType::f32) return request.decline("needs f32");
  const PagedAttentionShape shape(types, request.node().attributes);
  const MatmulUnits units = MatmulUnits::of_this_processor();
  return with_index(types[3].dtype, [&](auto page) -> std::unique_ptr<Kernel> {
    return std::make_unique<PagedRowsKernel<decltype(page)>>(shape, units);
  });
}

}  // namespace fullbore::cpu
