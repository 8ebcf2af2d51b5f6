#include <algorithm>
#include <optional>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/tiles.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"

namespace fullbore::cpu {
namespace {

// Sets of keys from which on each of them is one item. The number of workers has no say in it, for
// the bits of the sums must not depend on that.
constexpr int64_t kManyKeySets = 8;
// Keys of an item where sets are few: enough that transposing the queries for each costs little.
constexpr int64_t kRangeKeys = 4 * kTileKeys;
// Keys, values and their sums of a set that stay in the second cache while all of its queries go by.
constexpr int64_t kMostBytesOfSet = 1 << 20;

struct KeyRange {
  int64_t key_set = -1;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const KeyRange&) const = default;
  int64_t count() const { return end - begin; }
};

template <class E>
class AttentionGradientKernel final : public CpuKernel {
 public:
  using Tiles = AttentionTiles<E>;
  AttentionGradientKernel(const Tiles& tiles, DType log_sum_exp, DType delta)
      : tiles_(tiles),
        problem_(tiles_.problem),
        blocks_(problem_),
        whole_(problem_.key_sets() >= kManyKeySets),
        at_once_(whole_ || 4 * problem_.shape.keys * tiles_.width() * int64_t{sizeof(float)} <=
                               kMostBytesOfSet),
        ranges_{problem_.shape.keys,
                whole_ ? std::max<int64_t>(1, problem_.shape.keys) : kRangeKeys},
        log_sum_exp_dtype_(log_sum_exp),
        delta_dtype_(delta) {}

  int64_t items() const override { return problem_.key_sets() * items_of_set(); }
  double nanoseconds() const override {
    const double matmul_flops = whole_ ? 10 : 14;
    return problem_.shape.pairs() *
           (matmul_flops * static_cast<double>(problem_.shape.width) + 40) /
           tiles_.flops_per_nanosecond();
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return tiles_.text("attention_gradient"); }

  // Items are sets of keys; or for each set its ranges of keys, spread evenly among its blocks of
  // queries.
  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[problem_.inputs() + problem_.at.gradients]) +
                    worker_bytes() * worker);
    Workspace w(*this, scratch);
    std::optional<AmxTiles> amx;
    if (tiles_.uses_amx()) amx.emplace();
    const int64_t keys = problem_.shape.keys;
    const int64_t of_set = items_of_set();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t key_set = item / of_set;
      // Whoever has all items of a set makes its scores once for all gradients: other work, the same sums.
      if (at_once_ && item % of_set == 0 && item + of_set <= end) {
        prepare_keys(buffers, {key_set, 0, keys}, w);
        run_keys(buffers, true, w);
        item += of_set - 1;
        continue;
      }
      const auto ranges_before = [&](int64_t i) { return i * ranges_.parts() / of_set; };
      const int64_t index = item % of_set;
      const int64_t range = from_both_ends(ranges_before(index), ranges_.parts());
      if (ranges_before(index + 1) > ranges_before(index)) {
        prepare_keys(buffers, {key_set, ranges_.begin(range), ranges_.end(range)}, w);
        run_keys(buffers, false, w);
      } else {
        prepare_keys(buffers, {key_set, 0, keys}, w);
        run_block(buffers, blocks_[index - ranges_before(index)], true, nullptr, w);
      }
    }
  }

 private:
  struct Workspace {
    TileMasks masks;
    E *transposed_q, *transposed_dy, *stacked_q, *stacked_dy;
    E *key_copy, *key_stack, *value_copy;
    float *scores, *dot_products, *dq, *dk, *dv;
    float *log_sum_exp, *delta, *largest;
    VnniPair *weight_pairs, *slope_pairs, *slope_key_pairs;
    KeyRange range = {};
    typename Tiles::Rows keys;          ///< rows
    typename Tiles::Rows keys_stacked;  ///< the same, stacked
    typename Tiles::Rows values;        ///< rows

    Workspace(const AttentionGradientKernel& kernel, Scratch& scratch)
        : masks(kernel.problem_, scratch) {
      const Tiles& tiles = kernel.tiles_;
      const AttentionProblem& p = kernel.problem_;
      const int64_t keys_in_all = p.shape.keys;
      const bool in_place = tiles.sums_in_place(p.k);
      const int64_t together = kernel.at_once_ ? keys_in_all : kernel.ranges_.size;
      const int64_t sums = in_place ? 0 : together * tiles.width();
      constexpr int64_t kTile = kTileKeys * kTileQueries;
      transposed_q = scratch.take<E>(tiles.depth() * kTileQueries);
      transposed_dy = scratch.take<E>(tiles.depth() * kTileQueries);
      stacked_q = scratch.take<E>(tiles.copied_stack(p.q, kTileQueries));
      stacked_dy = scratch.take<E>(tiles.copied_stack(p.y, kTileQueries));
      key_copy = scratch.take<E>(tiles.copied_rows(p.k, keys_in_all));
      key_stack = Tiles::kVnni ? scratch.take<E>(tiles.copied_stack(p.k, keys_in_all)) : nullptr;
      value_copy = scratch.take<E>(tiles.copied_rows(p.v, keys_in_all));
      scores = scratch.take<float>(kTile);
      dot_products = scratch.take<float>(kTile);
      dq = scratch.take<float>(tiles.sums_in_place(p.q) ? 0 : kTileQueries * tiles.width());
      dk = scratch.take<float>(sums);
      dv = scratch.take<float>(sums);
      for (float** statistic : {&log_sum_exp, &delta, &largest})
        *statistic = scratch.take<float>(kTileQueries);
      for (VnniPair** pairs : {&weight_pairs, &slope_pairs, &slope_key_pairs})
        *pairs = Tiles::kVnni ? scratch.take<VnniPair>(kTile / 2) : nullptr;
    }
  };

  int64_t items_of_set() const { return whole_ ? 1 : ranges_.parts() + blocks_.count(); }
  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }
  SourceMatrix rows_of(const RowLayout& layout, const void* tensor, int64_t first,
                       int64_t count) const {
    return tiles_.matrix(layout, tensor, first, count);
  }

  void prepare_keys(void* const* buffers, const KeyRange& range, Workspace& w) const {
    if (range == w.range) return;
    w.range = range;
    const int64_t first = range.key_set * problem_.shape.keys + range.begin;
    const SourceMatrix k = rows_of(problem_.k, buffers[problem_.at.k], first, range.count());
    const SourceMatrix v = rows_of(problem_.v, buffers[problem_.at.v], first, range.count());
    w.keys = tiles_.rows(k, w.key_copy);
    w.values = tiles_.rows(v, w.value_copy);
    w.keys_stacked = Tiles::kVnni ? tiles_.stacked(k, w.key_stack) : w.keys;
  }

  // dk and dv of the prepared range; dq too if the range is all of its keys.
  void run_keys(void* const* buffers, bool with_queries, Workspace& w) const {
    const size_t outputs = problem_.inputs();
    const int64_t first = w.range.key_set * problem_.shape.keys + w.range.begin;
    void* dk_result = buffers[outputs + problem_.at.dk];
    void* dv_result = buffers[outputs + problem_.at.dv];
    const KeySums sums{tiles_.sums_in(problem_.k, dk_result, first, w.dk),
                       tiles_.sums_in(problem_.v, dv_result, first, w.dv)};
    tiles_.clear(sums.dk, w.range.count());
    tiles_.clear(sums.dv, w.range.count());
    for (int64_t block = 0; block < blocks_.count(); ++block)
      run_block(buffers, blocks_[block], with_queries, &sums, w);
    if (tiles_.sums_in_place(problem_.k)) return;
    tiles_.round(w.dk, problem_.k, dk_result, first, w.range.count());
    tiles_.round(w.dv, problem_.v, dv_result, first, w.range.count());
  }

  // Of the prepared keys.
  struct KeySums {
    StridedRows dk, dv;
  };
  // One block of queries against the prepared keys: adds to their sums, unless these are null, and
  // makes dq if asked to.
  void run_block(void* const* buffers, const QueryBlock& block, bool with_queries,
                 const KeySums* sums, Workspace& w) const {
    const int64_t row = problem_.first_row(w.range.key_set) + block.first;
    void* dq_result = buffers[problem_.inputs() + problem_.at.dq];
    const StridedRows dq = tiles_.sums_in(problem_.q, dq_result, row, w.dq);
    if (with_queries) tiles_.clear(dq, block.count);
    QueryRows rows;
    for (int64_t key = w.range.begin; key < w.range.end; key += kTileKeys) {
      const SeenTile* const known = w.masks.known(w.range.key_set, block, key);
      if (known != nullptr && known->state == SeenTile::State::hidden) continue;
      TileView view = view_tile(problem_.shape, block, key, w.range.end);
      if (view.empty()) break;
      if (!tiles_.read_mask(buffers, w.range.key_set, block, view, w.masks)) continue;
      if (!rows.q.data) rows = prepare_rows(buffers, row, block, sums != nullptr, w);
      make_slopes(buffers, view, row, w);
      const int64_t offset = key - w.range.begin;
      const auto [weights, slopes, slopes_by_query] = results(w);
      if (sums) {
        tiles_.add_by_key(view, block.count, weights, rows.dy, sums->dv.from(offset));
        tiles_.add_by_key(view, block.count, slopes, rows.q, sums->dk.from(offset));
      }
      if (with_queries)
        tiles_.add_by_query(view, block.count, slopes_by_query,
                            w.keys_stacked.from(offset / Tiles::kStep), dq);
    }
    if (with_queries && !tiles_.sums_in_place(problem_.q))
      tiles_.round(w.dq, problem_.q, dq_result, row, block.count);
  }

  struct QueryRows {
    typename Tiles::Rows q, dy;  ///< stacked
  };

  QueryRows prepare_rows(void* const* buffers, int64_t row, const QueryBlock& block, bool with_keys,
                         Workspace& w) const {
    const SourceMatrix q = rows_of(problem_.q, buffers[problem_.at.q], row, block.count);
    const SourceMatrix dy = rows_of(problem_.y, buffers[problem_.at.dy], row, block.count);
    tiles_.transpose_queries(q, w.transposed_q);
    tiles_.transpose(dy, w.transposed_dy);
    const auto read = [&](const void* tensor, DType dtype, int64_t first, int64_t apart,
                          float* to) {
      const char* from = static_cast<const char*>(tensor) + first * dtype_bytes(dtype);
      if (apart == 1)
        tiles_.f32_gemm.copy_rows({from, dtype, block.count, 1, block.count}, to, kTileQueries);
      else
        tiles_.f32_gemm.copy_rows({from, dtype, apart, block.count, 1}, to, 1);
      std::fill(to + block.count, to + block.groups() * kGroupQueries, 0.0F);
    };
    read(buffers[problem_.at.log_sum_exp], log_sum_exp_dtype_, row, 1, w.log_sum_exp);
    read(buffers[problem_.at.delta], delta_dtype_, problem_.delta.element(row), problem_.delta.row,
         w.delta);
    if (!with_keys)
      return {{w.transposed_q, 0}, {w.transposed_dy, 0}};  // not read: only that they are there
    return {tiles_.stacked(q, w.stacked_q), tiles_.stacked(dy, w.stacked_dy)};
  }

  // Weights and the cotangents of the scores of one tile.
  void make_slopes(void* const* buffers, const TileView& view, int64_t row, Workspace& w) const {
    const int64_t first = view.first_key - w.range.begin;
    tiles_.scores(view, w.keys.from(first), w.transposed_q, w.scores);
    tiles_.scores(view, w.values.from(first), w.transposed_dy, w.dot_products);
    if (view.any_cut() || view.any_biased() || tiles_.remaining_scale() != 1)
      tiles_.mask(view, w.masks, w.scores, w.largest);
    if (w.masks.factors)
      tiles_.draw(view, row, problem_.draws(buffers, problem_.kept()), w.masks.factors);
    view.for_each_run([&](const TileRun& run) {
      const int64_t offset = run.offset(), query = run.query();
      TileGradient to{.weights = w.scores + offset, .slopes = w.dot_products + offset};
      if constexpr (Tiles::kVnni) {
        to.weight_pairs = w.weight_pairs + offset / 2;
        to.slope_pairs = w.slope_pairs + offset / 2;
        to.slope_key_pairs = w.slope_key_pairs + run.first_key / 2 * kTileQueries + query;
      }
      tiles_.loops.differentiate({w.scores + offset, run.keys(), run.queries()},
                                 w.dot_products + offset, w.log_sum_exp + query, w.delta + query,
                                 w.masks.factors ? w.masks.factors + offset : nullptr,
                                 static_cast<float>(problem_.shape.scale), to);
    });
  }

  // Of make_slopes: by key, by key, by query.
  static std::array<const E*, 3> results(const Workspace& w) {
    if constexpr (Tiles::kVnni)
      return {w.weight_pairs, w.slope_pairs, w.slope_key_pairs};
    else
      return {w.scores, w.dot_products, w.dot_products};
  }

  Tiles tiles_;
  const AttentionProblem& problem_;
  QueryBlocks blocks_;
  bool whole_;    ///< each set of keys is one item
  bool at_once_;  ///< may all items of a set be made as one?
  Blocks ranges_;
  DType log_sum_exp_dtype_;
  DType delta_dtype_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_gradient(const KernelRequest& request,
                                                const MatmulUnits& units) {
  const bool packed = is_packed_attention(request.node());
  const size_t operands = packed ? kPackedGradientOperands : kAttentionGradientOperands;
  return with_tiles(AttentionProblem(request, operands), units,
                    [&](const auto& tiles) -> std::unique_ptr<Kernel> {
                      using Tiles = std::remove_cvref_t<decltype(tiles)>;
                      return std::make_unique<AttentionGradientKernel<typename Tiles::Element>>(
                          tiles, request.input(tiles.problem.at.log_sum_exp).dtype,
                          request.input(tiles.problem.at.delta).dtype);
                    });
}

std::unique_ptr<Kernel> make_attention_gradient(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_attention_gradient(request, MatmulUnits::of_this_processor());
}

}  // namespace fullbore::cpu
