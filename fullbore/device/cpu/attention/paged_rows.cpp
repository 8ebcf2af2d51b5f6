#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/row_pages.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kPartKeys = 16;  // scores are padded to whole vectors of any unit

/// visit(T{}) with the type of 16 bits.
template <class Visit>
void with_narrow(DType dtype, const Visit& visit) {
  if (dtype == DType::bf16)
    visit(Bf16{});
  else
    visit(F16{});
}

/// An item is a row, whose pages are read one after the other, all heads of one at a time; what it computes depends on
/// nothing else.
class PagedRowsKernel final : public CpuKernel {
 public:
  PagedRowsKernel(const PagedAttentionShape& shape, DType queries, DType index, VectorUnit unit,
                  bool one_chain)
      : shape_(shape),
        queries_(queries),
        index_(index),
        one_chain_(one_chain),
        element_(dtype_bytes(shape.pool_dtype)),
        unit_(page_unit(unit)),
        loops_(unit_.loops(shape.pool_dtype)),
        order_(one_chain ? unit_.f32 : loops_),
        gemm_(*gemm_unit<float>(unit)),
        text_(fmt::format("paged attention {} {} x {} {} heads of {}, {} places of {}{}",
                          vector_unit_name(unit), shape.rows, shape.heads, dtype_name(queries),
                          shape.width, shape.places(), dtype_name(shape.pool_dtype),
                          one_chain ? " one chain" : "")) {}

  int64_t items() const override { return shape_.rows; }
  double nanoseconds() const override {
    const auto places = static_cast<double>(shape_.rows * shape_.places());
    const auto flops = static_cast<double>(shape_.heads * (4 * shape_.width + 100));
    return places * (2 * static_cast<double>(pool_row() * element_) / kBytesPerNanosecond +
                     flops / gemm_.flops_per_nanosecond);
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return text_; }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[6]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    const RowPages keys(shape_, index_, buffers, 1), values(shape_, index_, buffers, 2);
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(w.mixed, row_elements(), 0.0F);
      std::fill_n(w.sums, shape_.heads, 0.0F);
      if (keys.seen(row).any()) {
        take_queries(buffers[0], row, w);
        score(keys, row, values.first(row), w);
        soften(keys.seen(row), w);
        add_values(values, row, row + 1 < end ? keys.first(row + 1) : Stretch{}, w);
      }
      give_results(buffers[5], row, w);
    }
  }

 private:
  struct Workspace {
    float *queries, *scores, *sums;
    float* mixed;       ///< a row of y, before it is divided by the sums
    float* wide;        ///< a row of q or y, where these are narrow
    float* widened;     ///< values of a page [page_tokens, all groups' width], of one chain
    float* transposed;  ///< keys of a page [all groups' width, page_tokens], of one chain
    Workspace(const PagedRowsKernel& kernel, Scratch& scratch) {
      const int64_t page =
          kernel.one_chain_ ? kernel.pool_row() * kernel.shape_.page_tokens : int64_t{0};
      queries = scratch.take<float>(kernel.row_elements());
      scores = scratch.take<float>(kernel.shape_.heads * kernel.scores_row());
      sums = scratch.take<float>(kernel.shape_.heads);
      mixed = scratch.take<float>(kernel.row_elements());
      wide = scratch.take<float>(kernel.queries_ == DType::f32 ? 0 : kernel.row_elements());
      widened = scratch.take<float>(kernel.shape_.pool_dtype == DType::f32 ? 0 : page);
      transposed = scratch.take<float>(page);
    }
  };

  int64_t row_elements() const { return shape_.heads * shape_.width; }
  int64_t pool_row() const { return shape_.groups * shape_.width; }
  /// Of queries or results, and of scores, of the heads that share keys.
  int64_t group_elements() const { return shape_.queries() * shape_.width; }
  int64_t group_scores() const { return shape_.queries() * scores_row(); }
  /// Of the scores of a head: whole vectors, and a page more, in which the first place may lie late.
  int64_t scores_row() const { return round_up(shape_.places() + shape_.page_tokens, kPartKeys); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  /// visit(group, tile) for the heads that share keys. Each asks for a part of what is read next: a processor waits for some
  /// lines at a time and no more, and asked for all at once it would do nothing else meanwhile.
  template <class Visit>
  void for_each_group(int64_t places, const Stretch& next, const Visit& visit) const {
    const PageTile tile{.queries = shape_.queries(),
                        .places = places,
                        .width = shape_.width,
                        .stride = pool_row(),
                        .scores_row = scores_row()};
    for (int64_t group = 0; group < shape_.groups; ++group) {
      next.ask(group, shape_.groups);
      visit(group, tile);
    }
  }

  void take_queries(const void* q, int64_t row, const Workspace& w) const {
    const auto* from = static_cast<const float*>(q) + row * row_elements();
    if (queries_ != DType::f32) {
      with_narrow(queries_, [&](auto element) {
        const auto* narrow = static_cast<const decltype(element)*>(q) + row * row_elements();
        for (int64_t i = 0; i < row_elements(); ++i) w.wide[i] = load(narrow[i]);
      });
      from = w.wide;
    }
    for (int64_t head = 0; head < shape_.heads; ++head)
      order_.order(from + head * shape_.width, static_cast<float>(shape_.scale), shape_.width,
                   w.queries + head * shape_.width);
  }

  // Scores of whole pages, of which the places that are not seen are to be hidden.
  void score(const RowPages& pages, int64_t row, const Stretch& then, const Workspace& w) const {
    pages.for_each(
        row, then, [&](int64_t number, const char* keys, int64_t places, const Stretch& next) {
          float* scores = w.scores + number * shape_.page_tokens;
          if (!keys) {
            for (int64_t head = 0; head < shape_.heads; ++head)
              std::fill_n(scores + head * scores_row(), places, 0.0F);
            return;
          }
          if (one_chain_) return score_in_one_chain(keys, places, next, w, scores);
          for_each_group(places, next, [&](int64_t group, const PageTile& tile) {
            loops_.score(tile, w.queries + group * group_elements(),
                         keys + group * shape_.width * element_, scores + group * group_scores());
          });
        });
  }

  void soften(const SeenPlaces& seen, const Workspace& w) const {
    const int64_t skipped = seen.first % shape_.page_tokens;
    const int64_t end = seen.last - seen.first + skipped, padded = round_up(end, kPartKeys);
    for (int64_t head = 0; head < shape_.heads; ++head) {
      float* scores = w.scores + head * scores_row();
      std::fill_n(scores, skipped, -kInfinity);
      std::fill(scores + end, scores + padded, -kInfinity);
      w.sums[head] = unit_.soften(scores, padded);
    }
    if (one_chain_) sum_in_one_chain(end, w);
  }

  void add_values(const RowPages& pages, int64_t row, const Stretch& then,
                  const Workspace& w) const {
    pages.for_each(row, then,
                   [&](int64_t number, const char* values, int64_t places, const Stretch& next) {
                     if (!values) return;
                     const float* weights = w.scores + number * shape_.page_tokens;
                     if (one_chain_) return add_in_one_chain(values, places, next, w, weights);
                     for_each_group(places, next, [&](int64_t group, const PageTile& tile) {
                       loops_.add_values(tile, weights + group * group_scores(),
                                         values + group * shape_.width * element_,
                                         w.mixed + group * group_elements());
                     });
                   });
  }

  void give_results(void* y, int64_t row, const Workspace& w) const {
    const bool narrow = queries_ != DType::f32;
    float* const to = narrow ? w.wide : static_cast<float*>(y) + row * row_elements();
    for (int64_t head = 0; head < shape_.heads; ++head)
      order_.restore(w.mixed + head * shape_.width, w.sums[head] > 0 ? 1 / w.sums[head] : 0,
                     shape_.width, to + head * shape_.width);
    if (!narrow) return;
    with_narrow(queries_, [&](auto element) {
      using T = decltype(element);
      auto* rounded = static_cast<T*>(y) + row * row_elements();
      for (int64_t i = 0; i < row_elements(); ++i) rounded[i] = store<T>(w.wide[i]);
    });
  }

  // The sums of forward.cpp where rows are alike (attend_in_one_chain), to the bit. With keys in the lanes, scores are chains
  // along the width of a head;
  void score_in_one_chain(const char* keys, int64_t places, const Stretch& next, const Workspace& w,
                          float* scores) const {
    next.ask(0, 1);
    const int64_t tokens = shape_.page_tokens, width = shape_.width;
    gemm_.copy_transposed({keys, shape_.pool_dtype, pool_row(), places, pool_row()}, w.transposed,
                          tokens);
    for (int64_t group = 0; group < shape_.groups; ++group)
      for (int64_t place = 0; place < places; place += gemm_.block_columns)
        gemm_.multiply({.rows = shape_.queries(),
                        .columns = std::min<int64_t>(gemm_.block_columns, places - place),
                        .depth = width,
                        .a = w.queries + group * group_elements(),
                        .a_row = width,
                        .b = w.transposed + group * width * tokens + place,
                        .b_depth = tokens,
                        .c = scores + group * group_scores() + place,
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
  void add_in_one_chain(const char* page, int64_t places, const Stretch& next, const Workspace& w,
                        const float* weights) const {
    next.ask(0, 1);
    const auto* values = reinterpret_cast<const float*>(page);
    if (shape_.pool_dtype != DType::f32) {
      gemm_.copy({page, shape_.pool_dtype, pool_row(), places, pool_row()}, w.widened, pool_row());
      values = w.widened;
    }
    for (int64_t group = 0; group < shape_.groups; ++group)
      for (int64_t column = 0; column < shape_.width; column += gemm_.block_columns)
        gemm_.multiply({.rows = shape_.queries(),
                        .columns = std::min<int64_t>(gemm_.block_columns, shape_.width - column),
                        .depth = places,
                        .a = weights + group * group_scores(),
                        .a_row = scores_row(),
                        .b = values + group * shape_.width + column,
                        .b_depth = pool_row(),
                        .c = w.mixed + group * group_elements() + column,
                        .c_row = shape_.width,
                        .goes_on = true});
  }

  PagedAttentionShape shape_;
  DType queries_, index_;
  bool one_chain_;   ///< Target::row_invariant
  int64_t element_;  ///< bytes, of the pool
  const PageUnit& unit_;
  const PageLoops& loops_;
  const PageLoops& order_;  ///< how elements are ordered: in one chain as they lie
  const GemmUnit<float>& gemm_;
  std::string text_;
};

}  // namespace

std::unique_ptr<Kernel> make_paged_attention(KernelRequest& request) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < request.node().inputs.size(); ++i) types.push_back(request.input(i));
  if (types[0].dtype == DType::f64) return request.decline("sums of f64");
  return std::make_unique<PagedRowsKernel>(
      PagedAttentionShape(types, request.node().attributes), types[0].dtype, types[3].dtype,
      MatmulUnits::of_this_processor().vector_unit, request.row_invariant());
}

}  // namespace fullbore::cpu
