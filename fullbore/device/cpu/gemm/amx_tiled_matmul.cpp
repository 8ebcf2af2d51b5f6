#include "fullbore/device/cpu/gemm/amx_tiled_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fullbore/device/cpu/gemm/amx_matmul.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/cpu/kernels/scratch.h"

namespace fullbore::cpu {
namespace {

constexpr int64_t kTile = 16;  // rows, and columns of sums
constexpr int64_t kStepRows = kAmxDepth / 2;
constexpr int64_t kBf16 = 2;
constexpr int64_t kLine = 64;
// Of what is copied at once: the copies of a and of b, and sums that wait, are to lie in the second cache, of 2 MiB.
constexpr int64_t kCopiedBytes = 512 << 10;
constexpr int64_t kMostColumns = 256;
// Where only b is copied, of all its depth up to this one, and rows of a are read where they lie.
constexpr int64_t kMostDepth = 4096;
constexpr int64_t kMostRows = 128;
// Where both are copied, or depth is taken in parts. The larger a tile, the fewer copies there are of either.
constexpr int64_t kMostCopiedDepth = 512;
constexpr int64_t kMostCopiedRows = 512;

/// A tile of the result, and the depth that is copied at once.
struct Tiling {
  Blocks rows, columns, depth;

  Tiling(const Contraction& c, bool copies_a) {
    const bool all = !copies_a && c.k <= kMostDepth;
    depth = {c.k, std::min(round_up(c.k, kAmxDepth), all ? kMostDepth : kMostCopiedDepth)};
    int64_t most_rows = all ? kMostRows : kMostCopiedRows;
    int64_t most_columns = std::clamp(
        kCopiedBytes / (depth.size * kBf16) / kAmxColumns * kAmxColumns, kAmxColumns, kMostColumns);
    const auto equal = [](int64_t count, int64_t most, int64_t unit) {
      return Blocks{count, round_up(divide_up(count, divide_up(count, most)), unit)};
    };
    for (;;) {  // some for every worker, as small as two tiles by two
      rows = equal(c.m, most_rows, kTile);
      columns = equal(c.n, most_columns, kAmxColumns);
      const bool narrow = most_columns <= kAmxColumns, low = most_rows <= 2 * kTile;
      if (c.batch * rows.parts() * columns.parts() >= int64_t{2} * c.workers || (narrow && low))
        break;
      if (low || (!narrow && most_columns > most_rows))
        most_columns /= 2;
      else
        most_rows /= 2;
    }
  }
};

class AmxTiledMatmul final : public CpuKernel {
 public:
  AmxTiledMatmul(const Contraction& c, const GemmUnit<VnniPair>& pairs,
                 const GemmUnit<float>& words)
      : c_(c),
        pairs_(pairs),
        words_(words),
        copies_a_(c.transpose_a || c.k % kAmxDepth != 0),
        tiling_(c, copies_a_),
        direct_(c.out == DType::f32 && c.m % kTile == 0 && c.n % kAmxColumns == 0) {
    const int64_t a_step = copies_a_ ? tiling_.rows.size * kLine : kLine;
    for (int64_t step = 0; step < divide_up(tiling_.depth.size, kAmxDepth); ++step)
      steps_.push_back({step * a_step, step * kStepRows * kAmxColumns * kVnni});
  }

  int64_t items() const override {
    return c_.batch * tiling_.rows.parts() * tiling_.columns.parts();
  }
  double nanoseconds() const override {
    constexpr double kFlopsPerNanosecond = 800;
    const auto copied = static_cast<double>(c_.batch * c_.k * (c_.n + c_.m) * kBf16);
    return c_.flops() / kFlopsPerNanosecond + copied / kBytesPerNanosecond +
           100 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override { return worker_bytes() * workers; }
  std::string description() const override { return "matmul amx " + c_.text(); }
  bool may_alias(int input, int /*output*/) const override { return input == 2; }

  // Rows fastest: consecutive items share columns, whose copy they share if it is of all depth.
  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    Scratch scratch(static_cast<char*>(buffers[c_.add ? 4 : 3]) + worker_bytes() * worker);
    const Workspace w(*this, scratch);
    const AmxTiles shaped;
    const bool whole = tiling_.depth.parts() <= 1;
    int64_t copied = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column_tile = item / tiling_.rows.parts();
      const Tile tile = tile_of(item % tiling_.rows.parts(), column_tile);
      for (int64_t part = 0; part < tiling_.depth.parts(); ++part) {
        if (!whole || column_tile != copied) copy_b(buffers[1], tile, part, w.b);
        copied = column_tile;
        multiply(buffers, tile, part, w);
      }
      if (!direct_ && !whole)
        give(result(buffers), tile, 0, tile.columns, w.sums, tiling_.columns.size);
    }
  }

 private:
  static constexpr int64_t kVnni = 4;  // bytes of a pair

  struct Tile {
    int64_t batch = 0, row = 0, rows = 0, column = 0, columns = 0;
  };
  struct Workspace {
    char *a, *b;
    VnniPair* turned;  ///< of a transposed a: a step of all rows
    float* sums;       ///< of a block of columns, or of all if depth is taken in parts
    Workspace(const AmxTiledMatmul& kernel, Scratch& scratch) {
      const Tiling& t = kernel.tiling_;
      const auto steps = static_cast<int64_t>(kernel.steps_.size());
      a = scratch.take<char>(steps * kLine *
                             (kernel.copies_a_           ? t.rows.size
                              : kernel.c_.m % kTile == 0 ? 0
                                                         : kTile));
      b = scratch.take<char>(steps * kStepRows * t.columns.size * kVnni);
      turned = scratch.take<VnniPair>(kernel.c_.transpose_a ? kStepRows * t.rows.size : 0);
      sums = scratch.take<float>(
          kernel.direct_ ? 0 : t.rows.size * (t.depth.parts() > 1 ? t.columns.size : kAmxColumns));
    }
  };

  int64_t worker_bytes() const {
    Scratch scratch;
    const Workspace counted(*this, scratch);
    return scratch.bytes();
  }

  Tile tile_of(int64_t row_tile, int64_t column_tile) const {
    const int64_t columns = column_tile % tiling_.columns.parts();
    Tile tile{.batch = column_tile / tiling_.columns.parts(),
              .row = tiling_.rows.begin(row_tile),
              .column = tiling_.columns.begin(columns)};
    tile.rows = tiling_.rows.end(row_tile) - tile.row;
    tile.columns = tiling_.columns.end(columns) - tile.column;
    return tile;
  }
  int64_t depth_of(int64_t part) const {
    return tiling_.depth.end(part) - tiling_.depth.begin(part);
  }
  std::span<const AmxStep> steps_of(int64_t part) const {
    return std::span(steps_).first(static_cast<size_t>(divide_up(depth_of(part), kAmxDepth)));
  }
  static const char* at(const void* data, int64_t element) {
    return static_cast<const char*>(data) + element * kBf16;
  }

  // Blocks of columns one behind the other, each VNNI pairs [steps * 16, 32], zeros where there is nothing.
  void copy_b(const void* b, const Tile& tile, int64_t part, char* to) const {
    const int64_t first = tiling_.depth.begin(part), depth = depth_of(part);
    const auto steps = static_cast<int64_t>(steps_of(part).size());
    const int64_t block_bytes = steps * kStepRows * kAmxColumns * kVnni;
    for (int64_t column = 0; column < tile.columns; column += kAmxColumns, to += block_bytes) {
      const int64_t width = std::min(kAmxColumns, tile.columns - column);
      if (width < kAmxColumns)
        std::memset(to, 0, static_cast<size_t>(block_bytes));
      else if (depth % kAmxDepth != 0)
        std::memset(to + (steps - 1) * kStepRows * kAmxColumns * kVnni, 0,
                    kStepRows * kAmxColumns * kVnni);
      const int64_t begin = tile.batch * c_.k * c_.n;
      auto* const block = reinterpret_cast<VnniPair*>(to);
      if (c_.transpose_b)
        pairs_.copy_transposed(
            {at(b, begin + (tile.column + column) * c_.k + first), DType::bf16, c_.k, width, depth},
            block, kAmxColumns);
      else
        pairs_.copy(
            {at(b, begin + first * c_.n + tile.column + column), DType::bf16, c_.n, depth, width},
            block, kAmxColumns);
    }
  }

  // Step by step, of each all rows of the tile, 64 bytes of depth beside each other; zeros where there is nothing.
  void copy_a(const void* a, const Tile& tile, int64_t part, const Workspace& w) const {
    const int64_t first = tiling_.depth.begin(part), depth = depth_of(part);
    const int64_t padded = round_up(tile.rows, kTile), begin = tile.batch * c_.m * c_.k;
    char* to = w.a;
    for (int64_t done = 0; done < depth; done += kAmxDepth, to += tiling_.rows.size * kLine) {
      const int64_t count = std::min(kAmxDepth, depth - done);
      if (c_.transpose_a) {
        if (count < kAmxDepth || tile.rows < padded)
          std::memset(w.turned, 0, static_cast<size_t>(kStepRows * padded * kVnni));
        pairs_.copy(
            {at(a, begin + (first + done) * c_.m + tile.row), DType::bf16, c_.m, count, tile.rows},
            w.turned, padded);
        // Pairs are moved as if they were numbers.
        words_.copy_transposed({w.turned, DType::f32, padded, kStepRows, padded},
                               reinterpret_cast<float*>(to), kStepRows);
        continue;
      }
      const char* from = at(a, begin + tile.row * c_.k + first + done);
      if (count == kAmxDepth) {
        for (int64_t row = 0; row < tile.rows; ++row, from += c_.k * kBf16)
          std::memcpy(to + row * kLine, from, kLine);
      } else {
        std::memset(to, 0, static_cast<size_t>(tile.rows * kLine));
        for (int64_t row = 0; row < tile.rows; ++row, from += c_.k * kBf16)
          std::memcpy(to + row * kLine, from, static_cast<size_t>(count * kBf16));
      }
      std::memset(to + tile.rows * kLine, 0, static_cast<size_t>((padded - tile.rows) * kLine));
    }
  }

  // The last rows of a that make no whole tile, and zeros.
  void copy_last_rows(const char* from, int64_t rows, int64_t depth, char* to) const {
    const auto bytes = static_cast<size_t>(depth * kBf16);
    for (int64_t row = 0; row < rows; ++row, from += c_.k * kBf16, to += bytes)
      std::memcpy(to, from, bytes);
    std::memset(to, 0, static_cast<size_t>(kTile - rows) * bytes);
  }

  void multiply(void* const* buffers, const Tile& tile, int64_t part, const Workspace& w) const {
    AmxProduct upper{.rows = round_up(tile.rows, kTile),
                     .columns = kAmxColumns,
                     .steps = steps_of(part),
                     .b = w.b,
                     .b_row = kAmxColumns * kVnni,
                     .goes_on = part > 0 || c_.add};
    AmxProduct last = upper;
    last.rows = 0;
    if (copies_a_) {
      copy_a(buffers[0], tile, part, w);
      upper.a = w.a;
      upper.a_row = kLine;
    } else {
      const int64_t depth = depth_of(part);
      upper.a =
          at(buffers[0], tile.batch * c_.m * c_.k + tile.row * c_.k + tiling_.depth.begin(part));
      upper.a_row = c_.k * kBf16;
      upper.rows = tile.rows / kTile * kTile;
      if (upper.rows < tile.rows) {
        copy_last_rows(upper.a + upper.rows * upper.a_row, tile.rows - upper.rows, depth, w.a);
        last.rows = kTile;
        last.a = w.a;
        last.a_row = depth * kBf16;
      }
    }
    const bool whole = tiling_.depth.parts() <= 1;
    const int64_t block_bytes =
        static_cast<int64_t>(upper.steps.size()) * kStepRows * kAmxColumns * kVnni;
    for (int64_t column = 0; column < tile.columns; column += kAmxColumns) {
      const int64_t width = std::min(kAmxColumns, tile.columns - column);
      if (direct_) {
        upper.c = static_cast<float*>(result(buffers)) + result_at(tile, column);
        upper.c_row = c_.n;
      } else {
        upper.c = w.sums + (whole ? 0 : column);
        upper.c_row = whole ? kAmxColumns : tiling_.columns.size;
      }
      if (c_.add && part == 0)
        copy_rows(static_cast<const float*>(buffers[2]) + result_at(tile, column), c_.n, tile.rows,
                  width, upper.c, upper.c_row);
      AmxTiles::multiply(upper);
      if (last.rows > 0) {
        last.b = upper.b;
        last.c = upper.c + upper.rows * upper.c_row;
        last.c_row = upper.c_row;
        AmxTiles::multiply(last);
      }
      upper.b += block_bytes;
      if (!direct_ && whole) give(result(buffers), tile, column, width, w.sums, kAmxColumns);
    }
  }

  int64_t result_at(const Tile& tile, int64_t column) const {
    return (tile.batch * c_.m + tile.row) * c_.n + tile.column + column;
  }
  void* result(void* const* buffers) const { return buffers[c_.add ? 3 : 2]; }
  static void copy_rows(const float* from, int64_t from_stride, int64_t rows, int64_t width,
                        float* to, int64_t to_stride) {
    if (from == to) return;  // what is added lies where the result is to be
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(from + row * from_stride, width, to + row * to_stride);
  }
  void give(void* y, const Tile& tile, int64_t column, int64_t width, const float* sums,
            int64_t stride) const {
    const int64_t first = result_at(tile, column);
    if (c_.out == DType::bf16) {
      pairs_.round(sums, stride, static_cast<char*>(y) + first * kBf16, c_.n, c_.out, tile.rows,
                   width);
      return;
    }
    copy_rows(sums, stride, tile.rows, width, static_cast<float*>(y) + first, c_.n);
  }

  Contraction c_;
  const GemmUnit<VnniPair>& pairs_;
  const GemmUnit<float>& words_;
  bool copies_a_;
  Tiling tiling_;
  bool direct_;  ///< sums are stored where they belong
  std::vector<AmxStep> steps_;
};

}  // namespace

std::unique_ptr<Kernel> make_amx_tiled_matmul(const Contraction& c, std::string* why_not) {
  const auto decline = [&](std::string why) {
    *why_not = std::move(why);
    return nullptr;
  };
  const GemmUnit<VnniPair>* const pairs = gemm_unit<VnniPair>(VectorUnit::avx512);
  if (!this_processor().amx_bf16 || !pairs) return decline("this processor has no tiles for bf16");
  if (c.in != DType::bf16)
    return decline(fmt::format("tiles are for bf16, not for {}", dtype_name(c.in)));
  if (c.out != DType::bf16 && c.out != DType::f32)
    return decline(fmt::format("sums are not rounded to {}", dtype_name(c.out)));
  if (c.add && c.out != DType::f32) return decline("what is added is f32");
  if (c.one_chain || c.block_columns > 0)
    return decline("needs two matrices as they lie, summed in any order");
  if (c.flops() == 0) return decline("nothing to multiply");
  return std::make_unique<AmxTiledMatmul>(c, *pairs, *gemm_unit<float>(VectorUnit::avx512));
}

std::unique_ptr<Kernel> make_amx_tiled_matmul(KernelRequest& request) {
  std::string why_not;
  if (auto kernel = make_amx_tiled_matmul(Contraction::of(request), &why_not)) return kernel;
  return request.decline(why_not);
}

}  // namespace fullbore::cpu
