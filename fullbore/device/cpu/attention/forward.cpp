#include <algorithm>
#include <limits>
#include <optional>

#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/tiles.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Keys of which a row-invariant problem keeps the scores between its two walks over them: 1 MiB for a block of queries, which
// the second cache holds. Those of more are made twice.
constexpr int64_t kMostKeptKeys = 4096;

template <class E>
class AttentionKernel final : public CpuKernel {
 public:
  using Tiles = AttentionTiles<E>;
  explicit AttentionKernel(const Tiles& tiles)
      : tiles_(tiles), problem_(tiles_.problem), blocks_(problem_) {}

  int64_t items() const override { return problem_.key_sets() * blocks_.count(); }
  double nanoseconds() const override {
    return problem_.shape.pairs() * (4 * static_cast<double>(problem_.shape.width) + 40) /
           tiles_.flops_per_nanosecond();
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return tiles_.text("attention"); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const size_t inputs = problem_.inputs();
    Scratch scratch(static_cast<char*>(buffers[inputs + 2]) + worker_bytes() * worker);
    Workspace w(*this, scratch);
    std::optional<AmxTiles> amx;
    if (tiles_.uses_amx()) amx.emplace();
    int64_t prepared = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t key_set = item / blocks_.count();
      if (key_set != prepared) {
        const int64_t first = key_set * problem_.shape.keys;
        const int64_t keys = problem_.shape.keys;
        w.keys = tiles_.rows(tiles_.matrix(problem_.k, buffers[problem_.at.k], first, keys),
                             w.keys_copy);
        w.values = tiles_.stacked(tiles_.matrix(problem_.v, buffers[problem_.at.v], first, keys),
                                  w.values_copy);
        prepared = key_set;
      }
      attend(buffers, key_set, blocks_[item % blocks_.count()], w,
             static_cast<char*>(buffers[inputs]), static_cast<float*>(buffers[inputs + 1]));
    }
  }

 private:
  struct Workspace {
    TileMasks masks;
    E *transposed, *keys_copy, *values_copy, *pairs;
    float *scores, *sums;
    float *largest, *shift, *sum, *factor, *log_sum_exp;
    TileView* views = nullptr;  ///< of each tile that is scored apart from its values
    typename Tiles::Rows keys, values;

    Workspace(const AttentionKernel& kernel, Scratch& scratch) : masks(kernel.problem_, scratch) {
      const Tiles& tiles = kernel.tiles_;
      const int64_t keys_in_all = kernel.problem_.shape.keys;
      transposed = scratch.take<E>(tiles.depth() * kTileQueries);
      keys_copy = scratch.take<E>(tiles.copied_rows(kernel.problem_.k, keys_in_all));
      values_copy = scratch.take<E>(tiles.copied_stack(kernel.problem_.v, keys_in_all));
      pairs = scratch.take<E>(Tiles::kVnni ? kTileKeys / 2 * kTileQueries : 0);
      const int64_t tile_keys = round_up(std::max<int64_t>(1, keys_in_all), kTileKeys);
      scores = scratch.take<float>((kernel.keeps_scores() ? tile_keys : kTileKeys) * kTileQueries);
      if (kernel.problem_.row_invariant) views = scratch.take<TileView>(tile_keys / kTileKeys);
      const bool in_place = tiles.sums_in_place(kernel.problem_.y);
      sums = scratch.take<float>(in_place ? 0 : kTileQueries * tiles.width());
      for (float** statistic : {&largest, &shift, &sum, &factor, &log_sum_exp})
        *statistic = scratch.take<float>(kTileQueries);
    }
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  void attend(void* const* buffers, int64_t key_set, const QueryBlock& block, Workspace& w, char* y,
              float* log_sum_exp) const {
    const int64_t row = problem_.first_row(key_set) + block.first;
    const int64_t width = tiles_.width();
    const int64_t lanes = block.groups() * kGroupQueries;
    const StridedRows sums = tiles_.sums_in(problem_.y, y, row, w.sums);
    tiles_.clear(sums, block.count);
    std::fill_n(w.largest, lanes, -kInfinity);
    std::fill_n(w.shift, lanes, 0.0F);
    std::fill_n(w.sum, lanes, 0.0F);
    tiles_.transpose_queries(tiles_.matrix(problem_.q, buffers[problem_.at.q], row, block.count),
                             w.transposed);
    const TileDraws draws = w.masks.factors ? problem_.draws(buffers, 1) : TileDraws{};
    if (problem_.row_invariant)
      attend_in_one_chain(buffers, key_set, block, draws, w, sums);
    else
      attend_tile_by_tile(buffers, key_set, block, draws, w, sums);

    tiles_.loops.finish(lanes, w.shift, w.sum, problem_.kept(), w.log_sum_exp, w.factor);
    tiles_.loops.scale_rows(sums, block.count, width, w.factor);
    if (!tiles_.sums_in_place(problem_.y)) tiles_.round(w.sums, problem_.y, y, row, block.count);
    std::copy_n(w.log_sum_exp, block.count, log_sum_exp + row);
  }

  void attend_tile_by_tile(void* const* buffers, int64_t key_set, const QueryBlock& block,
                           const TileDraws& draws, Workspace& w, const StridedRows& sums) const {
    const int64_t row = problem_.first_row(key_set) + block.first;
    const int64_t lanes = block.groups() * kGroupQueries;
    for (int64_t key = 0; key < problem_.shape.keys; key += kTileKeys) {
      const SeenTile* const known = w.masks.known(key_set, block, key);
      if (known != nullptr && known->state == SeenTile::State::hidden) continue;
      TileView view = view_tile(problem_.shape, block, key, problem_.shape.keys);
      if (view.empty()) break;
      if (!score(buffers, key_set, block, view, w, w.scores)) continue;
      if (tiles_.loops.rescale(lanes, w.largest, w.shift, w.sum, w.factor))
        tiles_.loops.scale_rows(sums, block.count, tiles_.width(), w.factor);
      if (w.masks.factors) tiles_.draw(view, row, draws, w.masks.factors);
      add_values(view, block.count, w, w.scores, sums);
    }
  }

  // First the largest score of all keys, then the weights in terms of it: nothing is rescaled, and each sum goes from key to
  // key, to which a key that is not seen adds 0. So it does not matter where tiles begin, nor what lies between the keys.
  void attend_in_one_chain(void* const* buffers, int64_t key_set, const QueryBlock& block,
                           const TileDraws& draws, Workspace& w, const StridedRows& sums) const {
    const int64_t row = problem_.first_row(key_set) + block.first;
    const int64_t lanes = block.groups() * kGroupQueries;
    const bool kept = keeps_scores();
    const auto scores_of = [&](int64_t key) { return w.scores + (kept ? key * kTileQueries : 0); };
    int64_t end = 0;
    for (; end < problem_.shape.keys; end += kTileKeys) {
      TileView& view = w.views[end / kTileKeys];
      view = view_tile(problem_.shape, block, end, problem_.shape.keys);
      if (view.empty()) break;
      if (!score(buffers, key_set, block, view, w, scores_of(end))) view.groups = 0;
    }
    tiles_.loops.rescale(lanes, w.largest, w.shift, w.sum, w.factor);
    for (int64_t key = 0; key < end; key += kTileKeys) {
      TileView& view = w.views[key / kTileKeys];
      if (view.empty()) continue;
      if (!kept) score(buffers, key_set, block, view, w, w.scores);
      if (w.masks.factors) tiles_.draw(view, row, draws, w.masks.factors);
      add_values(view, block.count, w, scores_of(key), sums);
    }
  }
  bool keeps_scores() const {
    return problem_.row_invariant && problem_.shape.keys <= kMostKeptKeys;
  }

  // Masked; false: the mask hides the whole tile.
  bool score(void* const* buffers, int64_t key_set, const QueryBlock& block, TileView& view,
             Workspace& w, float* scores) const {
    if (!tiles_.read_mask(buffers, key_set, block, view, w.masks)) return false;
    tiles_.scores(view, w.keys.from(view.first_key), w.transposed, scores);
    tiles_.mask(view, w.masks, scores, w.largest);
    return true;
  }

  void add_values(const TileView& view, int64_t count, Workspace& w, float* scores,
                  const StridedRows& sums) const {
    view.for_each_run([&](const TileRun& run) {
      VnniPair* pairs = nullptr;
      if constexpr (Tiles::kVnni)
        pairs = w.pairs + run.first_key / Tiles::kStep * kTileQueries + run.query();
      tiles_.loops.exponentiate(
          {scores + run.offset(), run.keys(), run.queries()}, w.shift + run.query(),
          w.masks.factors ? w.masks.factors + run.offset() : nullptr, w.sum + run.query(), pairs);
    });
    const auto values = w.values.from(view.first_key / Tiles::kStep);
    if constexpr (Tiles::kVnni)
      tiles_.add_by_query(view, count, w.pairs, values, sums);
    else
      tiles_.add_by_query(view, count, scores, values, sums);
  }

  Tiles tiles_;
  const AttentionProblem& problem_;
  QueryBlocks blocks_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention(const KernelRequest& request, const MatmulUnits& units) {
  const bool packed = is_packed_attention(request.node());
  return with_tiles(AttentionProblem(request, packed ? kPackedOperands : kAttentionOperands), units,
                    [](const auto& tiles) -> std::unique_ptr<Kernel> {
                      using Tiles = std::remove_cvref_t<decltype(tiles)>;
                      return std::make_unique<AttentionKernel<typename Tiles::Element>>(tiles);
                    });
}

std::unique_ptr<Kernel> make_attention(KernelRequest& request) {
  if (request.input(0).dtype == DType::f64) return request.decline("sums are f32");
  return make_attention(request, MatmulUnits::of_this_processor());
}

}  // namespace fullbore::cpu
