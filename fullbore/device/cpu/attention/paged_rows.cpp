#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/row_pages.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kPartKeys = 16;  // scores are padded to whole vectors of any unit
// Bytes of a page that takes so long that asking for one ahead is enough.
constexpr int64_t kLongPage = int64_t{16} << 10;
// Rows that are read together, as long as their scores stay in the second cache.
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostScoreBytes = int64_t{256} << 10;

/// visit(T{}) with the type of 16 bits.
template <class Visit>
void with_narrow(DType dtype, const Visit& visit) {
  if (dtype == DType::bf16)
    visit(Bf16{});
  else
    visit(F16{});
}

/// An item is a row, whose pages are read one after the other, all heads of one at a time; what it computes depends on
/// nothing else. Neighbouring rows that begin with the same page are read page by page.
class PagedRowsKernel final : public CpuKernel {
 public:
  PagedRowsKernel(const PagedAttentionShape& shape, DType queries, DType index, VectorUnit unit,
                  bool one_chain, const PagePairLoops* pairs)
      : shape_(shape),
        queries_(queries),
        index_(index),
        one_chain_(one_chain),
        pairs_(pairs),
        element_(dtype_bytes(shape.pool_dtype)),
        ahead_(page_bytes() < kLongPage ? 2 : 1),
        most_rows_(std::clamp<int64_t>(kMostScoreBytes / (4 * shape.heads * scores_row() + 1), 1,
                                       kMostRows)),
        unit_(page_unit(unit)),
        loops_(unit_.loops(shape.pool_dtype)),
        order_(one_chain_ ? unit_.f32 : loops_),
        gemm_(*gemm_unit<float>(unit)),
        text_(fmt::format("paged attention {} {} x {} {} heads of {}, {} places of {}{}",
                          vector_unit_name(unit), shape.rows, shape.heads, dtype_name(queries),
                          shape.width, shape.places(), dtype_name(shape.pool_dtype),
                          one_chain_ ? " one chain"
                          : pairs_   ? " vnni"
                                     : "")) {}

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
    RowRange rows = read_together(keys, begin, end);
    for (RowRange later; rows.begin < rows.end; rows = later) {
      later = read_together(keys, rows.end, end);
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const RowWorkspace own = w.of(row - rows.begin);
        std::fill_n(own.mixed, row_elements(), 0.0F);
        std::fill_n(own.sums, shape_.heads, 0.0F);
        take_queries(buffers[0], row, own, w);
      }
      const PageWalk of_values(values, rows);
      score({keys, rows}, of_values, static_cast<const Bf16*>(buffers[0]), rows.begin, w);
      for (int64_t row = rows.begin; row < rows.end; ++row)
        if (keys.seen(row).any()) soften(keys.seen(row), w.of(row - rows.begin));
      add_values(of_values, {keys, later}, rows.begin, w);
      for (int64_t row = rows.begin; row < rows.end; ++row)
        give_results(buffers[5], row, w.of(row - rows.begin), w);
    }
  }

 private:
  struct RowWorkspace {
    float *queries, *scores, *sums;
    float* mixed;  ///< a row of y, before it is divided by the sums
  };
  /// What Workspace::transposed holds.
  struct TransposedPage {
    const char* keys = nullptr;
    int64_t places = 0;
  };
  struct Workspace {
    RowWorkspace rows[kMostRows] = {};
    float* wide;        ///< a row of q or y, where these are narrow
    float* widened;     ///< values of a page [page_tokens, all groups' width], of one chain
    float* transposed;  ///< keys of a page [all groups' width, page_tokens], of one chain
    Workspace(const PagedRowsKernel& kernel, Scratch& scratch) {
      const int64_t page =
          kernel.one_chain_ ? kernel.pool_row() * kernel.shape_.page_tokens : int64_t{0};
      for (RowWorkspace& row : std::span(rows).first(static_cast<size_t>(kernel.most_rows_))) {
        row.queries = scratch.take<float>(kernel.pairs_ ? 0 : kernel.row_elements());
        row.scores = scratch.take<float>(kernel.shape_.heads * kernel.scores_row());
        row.sums = scratch.take<float>(kernel.shape_.heads);
        row.mixed = scratch.take<float>(kernel.row_elements());
      }
      const bool widens = kernel.queries_ != DType::f32 && !kernel.pairs_;
      wide = scratch.take<float>(widens ? kernel.row_elements() : 0);
      widened = scratch.take<float>(kernel.shape_.pool_dtype == DType::f32 ? 0 : page);
      transposed = scratch.take<float>(page);
    }
    const RowWorkspace& of(int64_t row) const { return rows[row]; }
  };

  int64_t row_elements() const { return shape_.heads * shape_.width; }
  int64_t page_bytes() const { return pool_row() * element_ * shape_.page_tokens; }
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

  RowRange read_together(const RowPages& keys, int64_t begin, int64_t end) const {
    int64_t last = std::min(begin + 1, end);
    while (last < std::min(begin + most_rows_, end) && keys.begin_alike(begin, last)) ++last;
    return {begin, last};
  }

  PageTile tile_of(int64_t places, const Stretch& next) const {
    return {.groups = shape_.groups,
            .queries = shape_.queries(),
            .places = places,
            .width = shape_.width,
            .stride = pool_row(),
            .scores_row = scores_row(),
            .next = next};
  }

  void take_queries(const void* q, int64_t row, const RowWorkspace& own, const Workspace& w) const {
    if (pairs_) return;  // they are read as they lie
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
                   own.queries + head * shape_.width);
  }

  // Scores of whole pages, of which the places that are not seen are to be hidden. `q`: of pairs.
  void score(const PageWalk& pages, const PageWalk& then, const Bf16* q, int64_t first,
             const Workspace& w) const {
    TransposedPage transposed;
    for_each_page(pages, then, ahead_, [&](const PageWalk& at, const Stretch& next) {
      const RowWorkspace& own = w.of(at.row() - first);
      const int64_t places = at.places();
      float* const scores = own.scores + at.number() * shape_.page_tokens;
      const char* const keys = at.data();
      if (!keys) {
        for (int64_t head = 0; head < shape_.heads; ++head)
          std::fill_n(scores + head * scores_row(), places, 0.0F);
        return;
      }
      if (one_chain_) return score_in_one_chain(keys, places, next, own, w, transposed, scores);
      const PageTile tile = tile_of(places, next);
      if (pairs_)
        pairs_->score(tile, q + at.row() * row_elements(), reinterpret_cast<const Bf16*>(keys),
                      scores);
      else
        loops_.score(tile, own.queries, keys, scores);
    });
  }

  void soften(const SeenPlaces& seen, const RowWorkspace& own) const {
    const int64_t skipped = seen.first % shape_.page_tokens;
    const int64_t end = seen.last - seen.first + skipped, padded = round_up(end, kPartKeys);
    for (int64_t head = 0; head < shape_.heads; ++head) {
      float* scores = own.scores + head * scores_row();
      std::fill_n(scores, skipped, -kInfinity);
      std::fill(scores + end, scores + padded, -kInfinity);
      own.sums[head] =
          unit_.soften(scores, padded, pairs_ ? static_cast<float>(shape_.scale) : 1.0F);
    }
    if (one_chain_) sum_in_one_chain(end, own);
  }

  void add_values(const PageWalk& pages, const PageWalk& then, int64_t first,
                  const Workspace& w) const {
    for_each_page(pages, then, ahead_, [&](const PageWalk& at, const Stretch& next) {
      const char* const values = at.data();
      if (!values) return;
      const RowWorkspace& own = w.of(at.row() - first);
      const float* weights = own.scores + at.number() * shape_.page_tokens;
      if (one_chain_) return add_in_one_chain(values, at.places(), next, own, w, weights);
      const PageTile tile = tile_of(at.places(), next);
      if (pairs_)
        pairs_->add_values(tile, weights, reinterpret_cast<const Bf16*>(values), own.mixed);
      else
        loops_.add_values(tile, weights, values, own.mixed);
    });
  }

  void give_results(void* y, int64_t row, const RowWorkspace& own, const Workspace& w) const {
    const bool narrow = queries_ != DType::f32;
    const auto visit_heads = [&](const auto& visit) {
      for (int64_t head = 0; head < shape_.heads; ++head)
        visit(head * shape_.width, own.sums[head] > 0 ? 1 / own.sums[head] : 0);
    };
    if (pairs_)
      return visit_heads([&](int64_t at, float factor) {
        pairs_->finish(own.mixed + at, factor, shape_.width,
                       static_cast<Bf16*>(y) + row * row_elements() + at);
      });
    float* const to = narrow ? w.wide : static_cast<float*>(y) + row * row_elements();
    visit_heads([&](int64_t at, float factor) {
      order_.restore(own.mixed + at, factor, shape_.width, to + at);
    });
    if (!narrow) return;
    with_narrow(queries_, [&](auto element) {
      using T = decltype(element);
      auto* rounded = static_cast<T*>(y) + row * row_elements();
      for (int64_t i = 0; i < row_elements(); ++i) rounded[i] = store<T>(w.wide[i]);
    });
  }

  // The sums of forward.cpp where rows are alike (attend_in_one_chain), to the bit. With keys in the lanes, scores are chains
  // along the width of a head;
  void score_in_one_chain(const char* keys, int64_t places, const Stretch& next,
                          const RowWorkspace& own, const Workspace& w, TransposedPage& transposed,
                          float* scores) const {
    next.ask(0, 1);
    const int64_t tokens = shape_.page_tokens, width = shape_.width;
    if (transposed.keys != keys || transposed.places < places) {
      gemm_.copy_transposed({keys, shape_.pool_dtype, pool_row(), places, pool_row()}, w.transposed,
                            tokens);
      transposed = {keys, places};
    }
    for (int64_t group = 0; group < shape_.groups; ++group)
      for (int64_t place = 0; place < places; place += gemm_.block_columns)
        gemm_.multiply({.rows = shape_.queries(),
                        .columns = std::min<int64_t>(gemm_.block_columns, places - place),
                        .depth = width,
                        .a = own.queries + group * group_elements(),
                        .a_row = width,
                        .b = w.transposed + group * width * tokens + place,
                        .b_depth = tokens,
                        .c = scores + group * group_scores() + place,
                        .c_row = scores_row()});
  }
  // exponentials one from key to key, of all heads side by side;
  void sum_in_one_chain(int64_t end, const RowWorkspace& own) const {
    std::fill_n(own.sums, shape_.heads, 0.0F);
    for (int64_t key = 0; key < end; ++key)
      for (int64_t head = 0; head < shape_.heads; ++head)
        own.sums[head] += own.scores[head * scores_row() + key];
  }
  // and values, too, one from key to key.
  void add_in_one_chain(const char* page, int64_t places, const Stretch& next,
                        const RowWorkspace& own, const Workspace& w, const float* weights) const {
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
                        .c = own.mixed + group * group_elements() + column,
                        .c_row = shape_.width,
                        .goes_on = true});
  }

  PagedAttentionShape shape_;
  DType queries_, index_;
  bool one_chain_;              ///< Target::row_invariant
  const PagePairLoops* pairs_;  ///< null: pages are widened
  int64_t element_;             ///< bytes, of the pool
  int64_t ahead_;               ///< pages that are asked for ahead
  int64_t most_rows_;           ///< that are read together
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
  const PagedAttentionShape shape(types, request.node().attributes);
  const MatmulUnits units = MatmulUnits::of_this_processor();
  const bool pairs = units.vnni(types[0].dtype) && shape.pool_dtype == DType::bf16 &&
                     shape.width % kPagePairs == 0;
  const bool one_chain = request.row_invariant();
  return std::make_unique<PagedRowsKernel>(shape, types[0].dtype, types[3].dtype, units.vector_unit,
                                           one_chain,
                                           pairs && !one_chain ? page_pair_loops() : nullptr);
}

}  // namespace fullbore::cpu
