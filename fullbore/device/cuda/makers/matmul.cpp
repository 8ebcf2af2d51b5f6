#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/device/cuda/makers/matmul_problem.h"

namespace fullbore::cuda {
namespace {

constexpr uint32_t kWarpgroupThreads = 256;

/// Tiles that it has, and what tensor cores take for 64 of k of one and wait at its end, as measured on an H200.
struct WarpgroupTile {
  int64_t rows, columns;
  double unit, end;
  int64_t stage_bytes() const { return (rows + columns) * 64 * 2; }
  int64_t shared_bytes() const { return (227 << 10) / stage_bytes() * stage_bytes(); }
};
constexpr WarpgroupTile kWarpgroupTiles[] = {{128, 256, 1600, 2500}, {128, 128, 1100, 1500}};

/// kernels/matmul_sm90a.cpp: how it goes about a product, and what that takes of a multiprocessor's time.
struct WarpgroupWay {
  const WarpgroupTile* tile;
  /// Blocks that have equal shares of all tiles' units, 64 of k each; 0: blocks have whole tiles.
  int64_t shares;
  int64_t tiles;               ///< of all batches
  int64_t steps;               ///< units of a tile
  int64_t blocks;              ///< one a multiprocessor at most
  double slow_unit, slow_end;  ///< what rows that are not aligned to 16 bytes cost

  WarpgroupWay(const MatmulOperands& of, const CardFacts& card, const WarpgroupTile& of_tile,
               int64_t of_shares)
      : tile(&of_tile),
        shares(of_shares),
        tiles(divide_up(of.m, tile->rows) * divide_up(of.n, tile->columns) * of.batches),
        steps(std::max<int64_t>(1, divide_up(of.k, 64))),
        blocks(shares > 0 ? std::min(shares, tiles * steps)
                          : std::min<int64_t>(tiles, card.multiprocessors)),
        slow_unit(slow_rows(of.transpose_a ? of.m : of.k, tile->rows) +
                  slow_rows(of.transpose_b ? of.k : of.n, tile->columns)),
        slow_end(is_by_chunks(of.n) ? 0 : 40 * static_cast<double>(tile->columns)) {}

  /// A tile of partial sums for each share of a tile.
  int64_t scratch_bytes() const {
    return shares > 0 ? (blocks + tiles) * tile->rows * tile->columns * 4 : 0;
  }

  /// Estimated.
  double cycles() const {
    const double unit = tile->unit + slow_unit, end = tile->end + slow_end;
    constexpr double kStart = 3000, kSecondLaunch = 4000, kPart = 300, kBytesOfCycle = 2000;
    if (shares == 0)
      return kStart + static_cast<double>(divide_up(tiles, blocks)) *
                          (static_cast<double>(steps) * unit + end);
    return kStart + static_cast<double>(divide_up(tiles * steps, blocks)) * unit + end +
           kSecondLaunch + kPart * static_cast<double>(divide_up(blocks, tiles)) +
           2 * static_cast<double>(scratch_bytes()) / kBytesOfCycle;
  }

 private:
  static double slow_rows(int64_t contiguous, int64_t lines) {
    return is_by_chunks(contiguous) ? 0 : 24 * static_cast<double>(lines);
  }
};

/// What kernels/matmul_tensor_core.cpp takes, by the same measure: fitted to an H200.
double warp_wide_cycles(const MatmulOperands& of, const CardFacts& card) {
  const auto blocks = static_cast<double>(divide_up(of.blocks(64), card.multiprocessors));
  const auto steps = static_cast<double>(divide_up(of.k, 64));
  const bool are_chunks =
      is_by_chunks(of.transpose_a ? of.m : of.k) && is_by_chunks(of.transpose_b ? of.k : of.n);
  return (std::max(blocks * 450, 1300.0) + (are_chunks ? 0 : 1300)) * steps + 2000;
}

/// Whole tiles; or as many shares as there are multiprocessors; or some for each tile, so that few parts are left to be
/// summed.
WarpgroupWay best_way(const MatmulOperands& matmul, const CardFacts& card) {
  WarpgroupWay best(matmul, card, kWarpgroupTiles[0], 0);
  const auto consider = [&](const WarpgroupWay& other) {
    if (other.cycles() < best.cycles()) best = other;
  };
  for (const WarpgroupTile& tile : kWarpgroupTiles) {
    const WarpgroupWay whole(matmul, card, tile, 0);
    consider(whole);
    consider(WarpgroupWay(matmul, card, tile, card.multiprocessors));
    for (int64_t each = 2; each <= whole.steps && each * whole.tiles < card.multiprocessors; ++each)
      consider(WarpgroupWay(matmul, card, tile, each * whole.tiles));
  }
  return best;
}

}  // namespace

// c and y may be the same bytes: an element is read by the thread that writes it.
std::unique_ptr<CudaKernel> matmul_kernel(const Request& request, const MatmulOperands& matmul,
                                          std::vector<Launch> launches, double share_of_peak,
                                          int64_t scratch_bytes, bool tf32) {
  CudaKernel::Description description{
      .text = description_of(request) + (tf32 ? " as tf32" : ""),
      .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                              flop_nanoseconds(request.card, matmul.flops() / share_of_peak)),
      .scratch_bytes = scratch_bytes};
  if (matmul.adds) description.aliases = {{0, 2}};
  return std::make_unique<CudaKernel>(std::move(launches), std::move(description));
}

double other_cycles(const MatmulOperands& matmul, const CardFacts& card) {
  return std::min(best_way(matmul, card).cycles(), warp_wide_cycles(matmul, card));
}

std::unique_ptr<CudaKernel> warpgroup_matmul(const Request& request, int64_t columns,
                                             int64_t shares) {
  const MatmulOperands matmul(request);
  const auto* const tile = std::ranges::find(kWarpgroupTiles, columns, &WarpgroupTile::columns);
  const WarpgroupWay way(matmul, request.card, *tile, shares);
  const DType dtype = request.input(0).dtype;
  const std::string tile_text = fmt::format("{}x{}", tile->rows, tile->columns);
  const bool is_split = shares > 0;
  const Argument is_wide = number(request.output(0).dtype == DType::f32);
  const Argument scratch = is_split ? matmul.scratch() : null();
  std::vector<Launch> launches;
  launches.push_back(launch(
      "matmul_sm90a",
      fmt::format("matmul_{}_{}{}_{}", dtype_name(dtype), matmul.transpose_a ? 1 : 0,
                  matmul.transpose_b ? 1 : 0, tile_text),
      {.x = static_cast<uint32_t>(way.blocks)}, {.x = kWarpgroupThreads},
      {operand(0), operand(1), matmul.c(), matmul.y(), scratch, number(matmul.m), number(matmul.n),
       number(matmul.k), number(matmul.batches), is_wide, number(is_split)},
      tile->shared_bytes()));
  if (is_split)
    launches.push_back(
        launch("matmul_sm90a", fmt::format("matmul_parts_{}_{}", dtype_name(dtype), tile_text),
               {.x = static_cast<uint32_t>(way.tiles),
                .y = static_cast<uint32_t>(tile->rows / 128 * tile->columns / 32)},
               {.x = kWarpgroupThreads},
               {matmul.c(), matmul.y(), scratch, number(matmul.m), number(matmul.n),
                number(matmul.k), number(matmul.batches), is_wide, number(way.blocks)}));
  return matmul_kernel(request, matmul, std::move(launches), 0.75, way.scratch_bytes());
}

std::unique_ptr<CudaKernel> make_warpgroup_matmul(const Request& request, std::string* why_not) {
  const MatmulOperands matmul(request);
  const DType dtype = request.input(0).dtype;
  if (!is_low_precision(dtype)) {
    *why_not = fmt::format("needs bf16 or f16, got {}", dtype_name(dtype));
    return nullptr;
  }
  if (request.card.capability / 10 != 9 ||
      request.card.shared_bytes < kWarpgroupTiles[0].shared_bytes()) {
    *why_not = fmt::format("needs compute capability 9.0, the card has {:.1f}",
                           request.card.capability / 10.0);
    return nullptr;
  }
  const WarpgroupWay way = best_way(matmul, request.card);
  if (!matmul.fits(64) || way.tiles * way.steps >= int64_t{1} << 30) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  if (warp_wide_cycles(matmul, request.card) < way.cycles()) {
    *why_not = fmt::format("{} is too small: smaller tiles are faster", request.output(0).text());
    return nullptr;
  }
  return warpgroup_matmul(request, way.tile->columns, way.shares);
}

std::unique_ptr<CudaKernel> make_plain_matmul(const Request& request, std::string* why_not) {
  constexpr int64_t kTile = 64;
  constexpr uint32_t kThreads = 256;
  const MatmulOperands matmul(request);
  const DType dtype = request.input(0).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) {
    *why_not = fmt::format("needs f32 or f64, got {}", dtype_name(dtype));
    return nullptr;
  }
  if (!matmul.fits(kTile)) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  return matmul_kernel(request, matmul,
                       {launch("matmul", fmt::format("matmul_{}", dtype_name(dtype)),
                               matmul.grid(kTile), {.x = kThreads},
                               {operand(0), operand(1), matmul.c(), matmul.y(), number(matmul.m),
                                number(matmul.n), number(matmul.k), number(matmul.transpose_a),
                                number(matmul.transpose_b), number(matmul.batches)})},
                       1.0 / 16);
}

std::unique_ptr<CudaKernel> make_tensor_core_matmul(const Request& request, std::string* why_not) {
  const MatmulOperands matmul(request);
  const DType dtype = request.input(0).dtype;
  const bool tf32 = dtype == DType::f32 && request.node.attributes.get_or("tf32", false);
  if (!tf32 && !is_low_precision(dtype)) {
    *why_not = fmt::format("needs bf16, f16, or f32 with engine.precision=tf32, got {}",
                           dtype_name(dtype));
    return nullptr;
  }
  // Large tiles where they still give every multiprocessor a block.
  const int64_t tile = matmul.blocks(128) >= request.card.multiprocessors ? 128 : 64;
  if (!matmul.fits(tile)) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  // kernels/matmul_tensor_core.cpp: stages of 32 of k, rows padded by 8 elements. f32 has half as many of k, and of
  // padding where k lies contiguous.
  const auto stage = [&](bool depth_last) {
    return 2 * (depth_last ? tile * (32 + 8) : 32 * (tile + 8));
  };
  const int64_t shared =
      (tile == 64 ? 4 : 3) * (stage(!matmul.transpose_a) + stage(matmul.transpose_b));
  const std::string entry =
      fmt::format("matmul_{}_{}{}_{}", tf32 ? "tf32" : dtype_name(dtype),
                  matmul.transpose_a ? 1 : 0, matmul.transpose_b ? 1 : 0, tile);
  return matmul_kernel(
      request, matmul,
      {launch(
          "matmul_tensor_core", entry, matmul.grid(tile), {.x = tile == 128 ? 256U : 128U},
          {operand(0), operand(1), matmul.c(), matmul.y(), number(matmul.m), number(matmul.n),
           number(matmul.k), number(matmul.batches), number(request.output(0).dtype == DType::f32)},
          shared)},
      tf32 ? 0.3 : 0.6, 0, tf32);  // of the peak of bf16, of which that of tf32 is the half
}

}  // namespace fullbore::cuda
