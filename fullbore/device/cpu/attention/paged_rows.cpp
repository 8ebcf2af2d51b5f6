#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/kernels/scratch.h"
#include "fullbore/ops/paged_attention.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kPartKeys = 16;  // scores are padded to whole vectors of any unit

/// An item is a row, whose pages are read one after the other, all heads of one at a time; what it computes depends on
/// nothing else.
template <class Page>
class PagedRowsKernel final : public CpuKernel {
 public:
  PagedRowsKernel(const PagedAttentionShape& shape, VectorUnit unit, bool one_chain)
      : shape_(shape),
        one_chain_(one_chain),
        loops_(page_unit(unit)),
        gemm_(*gemm_unit<float>(unit)),
        text_(fmt::format("paged attention {} f32 {} x {} heads of {}, {} places{}",
                          vector_unit_name(unit), shape.rows, shape.heads, shape.width,
                          shape.places(), one_chain ? " one chain" : "")) {}

  int64_t items() const override { return shape_.rows; }
  double nanoseconds() const override {
    const auto places = static_cast<double>(shape_.rows * shape_.places());
    const auto numbers = 2 * places * static_cast<double>(pool_row());
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
    for (int64_t row = begin; row < end; ++row) {
      const int64_t last = std::clamp<int64_t>(seen[row], 0, shape_.places());
      const int64_t first = shape_.window > 0 ? std::max<int64_t>(0, seen[row] - shape_.window) : 0;
      attend(buffers, row, std::min(first, last), last, w);
    }
  }

 private:
  struct Workspace {
    float *queries, *scores, *sums;
    float* transposed;  ///< keys of a page [all groups' width, page_tokens]
    Workspace(const PagedRowsKernel& kernel, Scratch& scratch) {
      queries = scratch.take<float>(kernel.row_elements());
      scores = scratch.take<float>(kernel.shape_.heads * kernel.scores_row());
      sums = scratch.take<float>(kernel.shape_.heads);
      transposed = scratch.take<float>(
          kernel.one_chain_ ? kernel.pool_row() * kernel.shape_.page_tokens : 0);
    }
  };

  int64_t row_elements() const { return shape_.heads * shape_.width; }
  int64_t pool_row() const { return shape_.groups * shape_.width; }
  /// Of the scores of a head: whole vectors, and a page more, in which the first place may lie late.
  int64_t scores_row() const { return round_up(shape_.places() + shape_.page_tokens, kPartKeys); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  /// visit(number among them, row of the pool or -1, places of it) for each page with places of [first, last).
  template <class Visit>
  void for_each_page(void* const* buffers, const void* pool, int64_t row, int64_t first,
                     int64_t last, const Visit& visit) const {
    const auto* pages = static_cast<const Page*>(buffers[3]) + row * shape_.pages;
    const int64_t begin = first / shape_.page_tokens;
    const auto at = [&](int64_t page) -> int64_t {
      const auto number = static_cast<int64_t>(pages[page]);  // NOLINT(bugprone-signed-char-misuse)
      const bool there = number >= 0 && (number + 1) * shape_.page_tokens <= shape_.pool;
      return there ? number * shape_.page_tokens : -1;
    };
    const auto count = [&](int64_t page) {
      return std::clamp<int64_t>(last - page * shape_.page_tokens, 0, shape_.page_tokens);
    };
    for (int64_t page = begin; count(page) > 0; ++page) {
      // Pages lie anywhere: no processor finds the next one by itself.
      if (count(page + 1) > 0 && at(page + 1) >= 0)
        ask_for(static_cast<const float*>(pool) + at(page + 1) * pool_row(),
                count(page + 1) * pool_row());
      visit(page - begin, at(page), count(page));
    }
  }
  static void ask_for(const float* from, int64_t count) {
    constexpr int64_t kLine = 64 / sizeof(float);
    for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
  }

  /// visit(group, tile) for the heads that share keys.
  template <class Visit>
  void for_each_group(int64_t places, const Visit& visit) const {
    const PageTile tile{.queries = shape_.queries(),
                        .places = places,
                        .width = shape_.width,
                        .stride = pool_row(),
                        .scores_row = scores_row()};
    for (int64_t group = 0; group < shape_.groups; ++group) visit(group, tile);
  }

  void attend(void* const* buffers, int64_t row, int64_t first, int64_t last,
              const Workspace& w) const {
    auto* y = static_cast<float*>(buffers[5]) + row * row_elements();
    std::fill_n(y, row_elements(), 0.0F);
    if (first >= last) return;
    const auto* q = static_cast<const float*>(buffers[0]) + row * row_elements();
    const auto scale = static_cast<float>(shape_.scale);
    for (int64_t i = 0; i < row_elements(); ++i) w.queries[i] = q[i] * scale;
    const int64_t of_group = shape_.queries() * shape_.width;
    const int64_t scores_of_group = shape_.queries() * scores_row();

    // Scores of whole pages, of which the places outside [first, last) are not seen.
    for_each_page(buffers, buffers[1], row, first, last,
                  [&](int64_t number, int64_t at, int64_t places) {
                    float* scores = w.scores + number * shape_.page_tokens;
                    if (at < 0) {
                      for (int64_t head = 0; head < shape_.heads; ++head)
                        std::fill_n(scores + head * scores_row(), places, 0.0F);
                      return;
                    }
                    const float* keys = static_cast<const float*>(buffers[1]) + at * pool_row();
                    if (one_chain_) return score_in_one_chain(keys, places, w, scores);
                    for_each_group(places, [&](int64_t group, const PageTile& tile) {
                      loops_.score(tile, w.queries + group * of_group, keys + group * shape_.width,
                                   scores + group * scores_of_group);
                    });
                  });
    const int64_t skipped = first % shape_.page_tokens;
    const int64_t end = last - first + skipped, padded = round_up(end, kPartKeys);
    for (int64_t head = 0; head < shape_.heads; ++head) {
      float* scores = w.scores + head * scores_row();
      std::fill_n(scores, skipped, -kInfinity);
      std::fill(scores + end, scores + padded, -kInfinity);
      w.sums[head] = loops_.soften(scores, padded);
    }
    if (one_chain_) sum_in_one_chain(end, w);
    for_each_page(
        buffers, buffers[2], row, first, last, [&](int64_t number, int64_t at, int64_t places) {
          if (at < 0) return;
          const float* weights = w.scores + number * shape_.page_tokens;
          const float* values = static_cast<const float*>(buffers[2]) + at * pool_row();
          for_each_group(places, [&](int64_t group, const PageTile& tile) {
            const float* own = values + group * shape_.width;
            if (one_chain_)
              add_in_one_chain(tile, weights + group * scores_of_group, own, y + group * of_group);
            else
              loops_.add_values(tile, weights + group * scores_of_group, own, y + group * of_group);
          });
        });
    for (int64_t head = 0; head < shape_.heads; ++head) {
      const float inverse = w.sums[head] > 0 ? 1 / w.sums[head] : 0;
      for (int64_t d = 0; d < shape_.width; ++d) y[head * shape_.width + d] *= inverse;
    }
  }

  // The sums of forward.cpp where rows are alike (attend_in_one_chain), to the bit. With keys in the lanes, scores are chains
  // along the width of a head;
  void score_in_one_chain(const float* keys, int64_t places, const Workspace& w,
                          float* scores) const {
    const int64_t tokens = shape_.page_tokens, width = shape_.width, queries = shape_.queries();
    gemm_.copy_transposed({keys, DType::f32, pool_row(), places, pool_row()}, w.transposed, tokens);
    for (int64_t group = 0; group < shape_.groups; ++group)
      for (int64_t place = 0; place < places; place += gemm_.block_columns)
        gemm_.multiply({.rows = queries,
                        .columns = std::min<int64_t>(gemm_.block_columns, places - place),
                        .depth = width,
                        .a = w.queries + group * queries * width,
                        .a_row = width,
                        .b = w.transposed + group * width * tokens + place,
                        .b_depth = tokens,
                        .c = scores + group * queries * scores_row() + place,
                        .c_row = scores_row()});
  }
  // exponentials one from key to key, of all heads side by side;
  void sum_in_one_chain(int64_t end, const Workspace& w) const {
    std::fill_n(w.sums, shape_.heads, 0.0F);
    for (int64_t key = 0; key < end; ++key)
      for (int64_t head = 0; head < shape_.heads; ++head)
        w.sums[head] += w.scores[head * scores_row() + key];
  }
  // and values, too, one from key to key.
  void add_in_one_chain(const PageTile& tile, const float* weights, const float* values,
                        float* y) const {
    for (int64_t column = 0; column < tile.width; column += gemm_.block_columns)
      gemm_.multiply({.rows = tile.queries,
                      .columns = std::min<int64_t>(gemm_.block_columns, tile.width - column),
                      .depth = tile.places,
                      .a = weights,
                      .a_row = tile.scores_row,
                      .b = values + column,
                      .b_depth = tile.stride,
                      .c = y + column,
                      .c_row = tile.width,
                      .goes_on = true});
  }

  PagedAttentionShape shape_;
  bool one_chain_;  ///< Target::row_invariant
  const PageUnit& loops_;
  const GemmUnit<float>& gemm_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_paged_attention(KernelRequest& request) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < request.node().inputs.size(); ++i) types.push_back(request.input(i));
  if (types[0].dtype != DType::f32) return request.decline("needs f32");
  const PagedAttentionShape shape(types, request.node().attributes);
  const VectorUnit unit = MatmulUnits::of_this_processor().vector_unit;
  return with_index(types[3].dtype, [&](auto page) -> std::unique_ptr<Kernel> {
    return std::make_unique<PagedRowsKernel<decltype(page)>>(shape, unit, request.row_invariant());
  });
}

}  // namespace fullbore::cpu
