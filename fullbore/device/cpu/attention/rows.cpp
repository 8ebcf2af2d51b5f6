#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "fullbore/base/draw_unit.h"
#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/cpu/attention/tiles.h"

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// More queries fill enough of a vector's lanes for tiles to be faster.
constexpr int64_t kMostRows = 4;
// Keys of a part of the rows: as wide as a tile, whose loops serve rows of one key each.
constexpr int64_t kPartKeys = kTileQueries;

class AttentionRowsKernel final : public CpuKernel {
 public:
  using Tiles = AttentionTiles<float>;
  explicit AttentionRowsKernel(const Tiles& tiles)
      : tiles_(tiles), problem_(tiles_.problem), parts_{problem_.shape.keys, kPartKeys} {}

  int64_t items() const override { return problem_.key_sets(); }
  // Bound by reading keys and values once, and by the sums along the width of a head.
  double nanoseconds() const override {
    const auto width = static_cast<double>(problem_.shape.width);
    const auto element = static_cast<double>(dtype_bytes(problem_.dtype));
    const double bytes = 2 * static_cast<double>(items() * problem_.shape.keys) * width * element;
    return bytes / kBytesPerNanosecond +
           problem_.shape.pairs() * (4 * width + 200) / tiles_.flops_per_nanosecond();
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return tiles_.text("attention rows"); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[problem_.inputs() + 2]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    for (int64_t item = begin; item < end; ++item) {
      score(buffers, item, w);
      soften(buffers, item, w);
      add_values(buffers, item, w);
      finish(buffers, item, w);
    }
  }

 private:
  int64_t count() const { return problem_.shape.rows(); }
  int64_t stride() const { return parts_.parts() * kPartKeys; }
  int64_t width() const { return tiles_.width(); }

  struct Workspace {
    float *queries, *scores, *values, *sums;
    float* transposed;  ///< keys of a part [width, kPartKeys], of a row-invariant problem
    float *bias, *factors, *largest, *shift, *sum;  // a part's keys; largest for each row
    float *row_shift, *row_sum, *inverse, *log_sum_exp;
    bool* seen;  // is any key of the part?

    Workspace(const AttentionRowsKernel& kernel, Scratch& scratch) {
      queries = scratch.take<float>(kernel.count() * kernel.width());
      scores = scratch.take<float>(kernel.count() * kernel.stride());
      values = scratch.take<float>(kernel.tiles_.copied_rows(kernel.problem_.v, kPartKeys));
      sums = scratch.take<float>(kernel.count() * kernel.width());
      transposed =
          scratch.take<float>(kernel.problem_.row_invariant ? kernel.width() * kPartKeys : 0);
      largest = scratch.take<float>(kernel.count() * kPartKeys);
      for (float** part : {&bias, &factors, &shift, &sum}) *part = scratch.take<float>(kPartKeys);
      for (float** row : {&row_shift, &row_sum, &inverse, &log_sum_exp})
        *row = scratch.take<float>(kGroupQueries);
      seen = scratch.take<bool>(kernel.parts_.parts());
    }
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  // Scores of all keys, -inf where a query does not see one, and beyond the last.
  void score(void* const* buffers, int64_t key_set, const Workspace& w) const {
    const int64_t first = problem_.first_row(key_set);
    const auto scale = static_cast<float>(problem_.shape.scale);
    tiles_.f32_gemm.copy_rows(tiles_.matrix(problem_.q, buffers[0], first, count()), w.queries,
                              width());
    tiles_.loops.scale({w.queries, width()}, count(), width(), scale);
    std::fill_n(w.largest, count() * kPartKeys, -kInfinity);
    for (int64_t part = 0; part < parts_.parts(); ++part) {
      w.seen[part] = false;
      for (int64_t row = 0; row < count(); ++row) score_part(buffers, key_set, part, row, w);
    }
  }

  void score_part(void* const* buffers, int64_t key_set, int64_t part, int64_t row,
                  const Workspace& w) const {
    const int64_t key = parts_.begin(part);
    const int64_t visible = problem_.shape.visible(row % problem_.shape.queries);
    const int64_t keys = std::clamp<int64_t>(visible - key, 0, parts_.end(part) - key);
    float* scores = w.scores + row * stride() + key;
    std::fill(scores + keys, scores + kPartKeys, -kInfinity);
    if (keys == 0) return;
    const bool masked = problem_.shape.masked;
    if (masked && !tiles_.widen_mask(tiles_.mask_at(buffers, key_set, row, key), keys, w.bias)) {
      std::fill_n(scores, keys, -kInfinity);
      return;
    }
    if (problem_.row_invariant) {
      if (!w.seen[part]) transpose_keys(buffers, key_set, part, w);
      tiles_.multiply({.rows = 1,
                       .columns = keys,
                       .depth = width(),
                       .a = w.queries + row * width(),
                       .a_row = width(),
                       .b = w.transposed,
                       .b_depth = kPartKeys},
                      scores, kPartKeys);
    } else {
      dot_products(buffers, key_set, key, keys, w.queries + row * width(), scores);
    }
    w.seen[part] = true;
    if (masked) std::fill(w.bias + keys, w.bias + kPartKeys, 0.0F);
    tiles_.loops.mask({scores, 1, kPartKeys}, {.bias = masked ? w.bias : nullptr},
                      w.largest + row * kPartKeys);
  }

  void dot_products(void* const* buffers, int64_t key_set, int64_t key, int64_t keys,
                    const float* query, float* scores) const {
    const SourceMatrix from =
        tiles_.matrix(problem_.k, buffers[1], key_set * problem_.shape.keys + key, keys);
    tiles_.f32_gemm.dot({.rows = 1,
                         .columns = keys,
                         .depth = width(),
                         .a = query,
                         .a_row = width(),
                         .b = from.data,
                         .b_dtype = from.dtype,
                         .b_column = width(),
                         .c = scores,
                         .c_row = keys});
  }
  // With keys in the lanes, scores are sums along the width of a head in the order in which tiles make them.
  void transpose_keys(void* const* buffers, int64_t key_set, int64_t part,
                      const Workspace& w) const {
    const int64_t key = parts_.begin(part);
    tiles_.f32_gemm.copy_transposed(
        tiles_.matrix(problem_.k, buffers[1], key_set * problem_.shape.keys + key,
                      parts_.end(part) - key),
        w.transposed, kPartKeys);
  }

  // Scores to weights, not yet divided by their sum.
  void soften(void* const* buffers, int64_t key_set, const Workspace& w) const {
    const bool drops = problem_.shape.dropout > 0;
    const TileDraws draws = drops ? problem_.draws(buffers, 1) : TileDraws{};
    for (int64_t row = 0; row < count(); ++row) {
      const float* largest = w.largest + row * kPartKeys;
      const float most = *std::max_element(largest, largest + kPartKeys);
      w.row_shift[row] = most > -kInfinity ? most : 0;
      std::fill_n(w.shift, kPartKeys, w.row_shift[row]);
      std::fill_n(w.sum, kPartKeys, 0.0F);
      w.row_sum[row] = 0;
      for (int64_t part = 0; part < parts_.parts(); ++part) {
        if (!w.seen[part]) continue;
        const int64_t key = parts_.begin(part);
        if (drops) draw_part(draws, problem_.first_row(key_set) + row, key, w.factors);
        tiles_.loops.exponentiate({w.scores + row * stride() + key, 1, kPartKeys}, w.shift,
                                  drops ? w.factors : nullptr, w.sum, nullptr);
        if (problem_.row_invariant)
          w.row_sum[row] =
              std::accumulate(w.scores + row * stride() + key,
                              w.scores + row * stride() + key + kPartKeys, w.row_sum[row]);
      }
      if (!problem_.row_invariant) w.row_sum[row] = std::accumulate(w.sum, w.sum + kPartKeys, 0.0F);
    }
  }

  // The factors of the part's keys for one row.
  void draw_part(const TileDraws& draws, int64_t row, int64_t key, float* factors) const {
    const auto words = [](uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; };
    const auto element =
        static_cast<uint32_t>(row * problem_.shape.draws_of_row() + key / kDrawElements);
    uint8_t kept[kPartKeys];
    draw_units().front().compare(
        words(draws.key[0], draws.key[1]), words(draws.words[1], draws.words[2]),
        words(element, draws.words[0]), static_cast<uint16_t>(draws.threshold), kept,
        kPartKeys / kDrawElements);
    for (int64_t i = 0; i < kPartKeys; ++i) factors[i] = kept[i] ? draws.kept : 0;
  }

  void add_values(void* const* buffers, int64_t key_set, const Workspace& w) const {
    std::fill_n(w.sums, count() * width(), 0.0F);
    for (int64_t part = 0; part < parts_.parts(); ++part) {
      if (!w.seen[part]) continue;
      const int64_t key = parts_.begin(part);
      const int64_t keys = parts_.end(part) - key;
      const int64_t first = key_set * problem_.shape.keys + key;
      const auto values = tiles_.rows(tiles_.matrix(problem_.v, buffers[2], first, keys), w.values);
      tiles_.multiply({.rows = count(),
                       .columns = width(),
                       .depth = keys,
                       .a = w.scores + key,
                       .a_row = stride(),
                       .b = values.data,
                       .b_depth = values.stride,
                       .accumulate = !problem_.row_invariant,
                       .goes_on = problem_.row_invariant},
                      w.sums, width());
    }
  }

  void finish(void* const* buffers, int64_t key_set, const Workspace& w) const {
    const int64_t first = problem_.first_row(key_set);
    std::fill(w.row_shift + count(), w.row_shift + kGroupQueries, 0.0F);
    std::fill(w.row_sum + count(), w.row_sum + kGroupQueries, 0.0F);
    tiles_.loops.finish(kGroupQueries, w.row_shift, w.row_sum, problem_.kept(), w.log_sum_exp,
                        w.inverse);
    tiles_.loops.scale_rows({w.sums, width()}, count(), width(), w.inverse);
    const size_t outputs = problem_.inputs();
    tiles_.round(w.sums, problem_.y, buffers[outputs], first, count());
    std::copy_n(w.log_sum_exp, count(), static_cast<float*>(buffers[outputs + 1]) + first);
  }

  Tiles tiles_;
  const AttentionProblem& problem_;
  Blocks parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_rows(const KernelRequest& request,
                                            const MatmulUnits& units) {
  const AttentionProblem problem(request, kAttentionOperands);
  if (problem.shape.rows() > kMostRows) return nullptr;
  return std::make_unique<AttentionRowsKernel>(AttentionTiles<float>(problem, units));
}

std::unique_ptr<Kernel> make_attention_rows(KernelRequest& request) {
  const AttentionProblem problem(request, kAttentionOperands);
  if (problem.dtype == DType::f64) return request.decline("sums are f32");
  if (problem.row_invariant && problem.shape.dropout > 0)
    return request.decline("what is dropped is no part of a chain of weights");
  if (auto kernel = make_attention_rows(request, MatmulUnits::of_this_processor())) return kernel;
  return request.decline(fmt::format("{} queries for each set of keys are more than {}",
                                     problem.shape.rows(), kMostRows));
}

}  // namespace fullbore::cpu
