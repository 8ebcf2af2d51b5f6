#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/device/cuda/makers/matmul_problem.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kRowsOfBlock = 128, kBlocks = 2, kRowsOfPair = kBlocks * kRowsOfBlock;
constexpr uint32_t kThreads = 384, kThreadsOfParts = 256;
// Smaller products are launched with others of their kind as one (executor/merged_nodes.h), which pairs cannot be.
constexpr double kFewestFlops = 2e9;

/// Tiles of a pair, and what tensor cores take for 64 of k of one and wait at its end: estimated.
struct ClusterTile {
  int64_t columns;
  double unit, end;
  int64_t stage_bytes() const { return (kRowsOfBlock + columns) * 64 * 2; }
  int64_t shared_bytes() const {
    constexpr int64_t kBarriers = 16;  // two of a stage
    return std::min<int64_t>(6, (226 << 10) / stage_bytes()) * (stage_bytes() + kBarriers);
  }
};
constexpr ClusterTile kClusterTiles[] = {{256, 1150, 1500}, {128, 700, 1000}};

/// kernels/matmul_clusters_sm90a.cpp: how it goes about a product.
struct ClusterWay {
  const ClusterTile* tile;
  int64_t shares;  ///< pairs that have equal shares of all tiles' units; 0: pairs have whole tiles
  int64_t tiles;   ///< of all batches
  int64_t steps;   ///< units of a tile, 64 of k each
  int64_t pairs;

  ClusterWay(const MatmulOperands& of, const CardFacts& card, const ClusterTile& of_tile,
             int64_t of_shares)
      : tile(&of_tile),
        shares(of_shares),
        tiles(divide_up(of.m, kRowsOfPair) * divide_up(of.n, tile->columns) * of.batches),
        steps(std::max<int64_t>(1, divide_up(of.k, 64))),
        pairs(shares > 0 ? std::min(shares, tiles * steps)
                         : std::min<int64_t>(tiles, card.multiprocessors / kBlocks)) {}

  int64_t scratch_bytes() const {
    return shares > 0 ? (pairs + tiles) * kRowsOfPair * tile->columns * 4 : 0;
  }
  /// Estimated, as those of makers/matmul.cpp.
  double cycles() const {
    constexpr double kStart = 3500, kSecondLaunch = 4000, kPart = 300, kBytesOfCycle = 2000;
    if (shares == 0)
      return kStart + static_cast<double>(divide_up(tiles, pairs)) *
                          (static_cast<double>(steps) * tile->unit + tile->end);
    return kStart + static_cast<double>(divide_up(tiles * steps, pairs)) * tile->unit + tile->end +
           kSecondLaunch + kPart * static_cast<double>(divide_up(pairs, tiles)) +
           2 * static_cast<double>(scratch_bytes()) / kBytesOfCycle;
  }
};

ClusterWay best_way(const MatmulOperands& matmul, const CardFacts& card) {
  ClusterWay best(matmul, card, kClusterTiles[0], 0);
  const auto consider = [&](const ClusterWay& other) {
    if (other.cycles() < best.cycles()) best = other;
  };
  const int64_t most_pairs = card.multiprocessors / kBlocks;
  for (const ClusterTile& tile : kClusterTiles) {
    const ClusterWay whole(matmul, card, tile, 0);
    consider(whole);
    consider(ClusterWay(matmul, card, tile, most_pairs));
    for (int64_t each = 2; each <= whole.steps && each * whole.tiles < most_pairs; ++each)
      consider(ClusterWay(matmul, card, tile, each * whole.tiles));
  }
  return best;
}

/// Of an operand [batches, outer, inner] whose lines are its rows, or its columns: boxes of 64 of k by so many lines, or of 64
/// lines by 64 of k.
Argument map_of(size_t index, DType dtype, int64_t batches, int64_t lines, int64_t k,
                bool is_depth_last, int64_t box_lines) {
  const auto inner = static_cast<uint64_t>(is_depth_last ? k : lines);
  const auto outer = static_cast<uint64_t>(is_depth_last ? lines : k);
  Argument argument = operand(index);
  argument.map = std::make_shared<const TensorMap>(
      TensorMap{.dtype = dtype,
                .extents = {inner, outer, static_cast<uint64_t>(batches)},
                .strides = {2 * inner, 2 * inner * outer},
                .box = {64, static_cast<uint32_t>(is_depth_last ? box_lines : 64), 1}});
  return argument;
}

/// No card has run pairs of blocks: who would be the first says so.
bool are_asked_for() {
  const char* const value = std::getenv("FULLBORE_CUDA_CLUSTERS");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

std::unique_ptr<CudaKernel> cluster_matmul(const Request& request, int64_t columns,
                                           int64_t shares) {
  const MatmulOperands matmul(request);
  const auto* const tile = std::ranges::find(kClusterTiles, columns, &ClusterTile::columns);
  const ClusterWay way(matmul, request.card, *tile, shares);
  const DType dtype = request.input(0).dtype;
  const bool is_split = shares > 0;
  const Argument is_wide = number(request.output(0).dtype == DType::f32);
  const Argument scratch = is_split ? matmul.scratch() : null();
  std::vector<Launch> launches;
  launches.push_back(launch(
      "matmul_clusters_sm90a",
      fmt::format("matmul_clusters_{}_{}{}_{}", dtype_name(dtype), matmul.transpose_a ? 1 : 0,
                  matmul.transpose_b ? 1 : 0, columns),
      {.x = static_cast<uint32_t>(way.pairs * kBlocks)}, {.x = kThreads},
      {map_of(0, dtype, matmul.batches, matmul.m, matmul.k, !matmul.transpose_a, kRowsOfBlock),
       map_of(1, dtype, matmul.batches, matmul.n, matmul.k, matmul.transpose_b, columns / kBlocks),
       matmul.c(), matmul.y(), scratch, number(matmul.m), number(matmul.n), number(matmul.k),
       number(matmul.batches), is_wide, number(is_split)},
      tile->shared_bytes()));
  if (is_split)
    launches.push_back(launch(
        "matmul_clusters_sm90a",
        fmt::format("matmul_clusters_parts_{}_{}", dtype_name(dtype), columns),
        {.x = static_cast<uint32_t>(way.tiles * kBlocks), .y = static_cast<uint32_t>(columns / 32)},
        {.x = kThreadsOfParts},
        {matmul.c(), matmul.y(), scratch, number(matmul.m), number(matmul.n), number(matmul.k),
         number(matmul.batches), is_wide, number(way.pairs)}));
  return matmul_kernel(request, matmul, std::move(launches), 0.85, way.scratch_bytes());
}

std::unique_ptr<CudaKernel> make_cluster_matmul(const Request& request, std::string* why_not) {
  const MatmulOperands matmul(request);
  const DType dtype = request.input(0).dtype;
  if (!are_asked_for()) {
    *why_not = "no card has run it: FULLBORE_CUDA_CLUSTERS=1 asks for it";
    return nullptr;
  }
  if (!is_low_precision(dtype)) {
    *why_not = fmt::format("needs bf16 or f16, got {}", dtype_name(dtype));
    return nullptr;
  }
  if (request.card.capability / 10 != 9 || request.card.multiprocessors < kBlocks ||
      request.card.shared_bytes < kClusterTiles[0].shared_bytes() + 1024) {
    *why_not = fmt::format("needs compute capability 9.0, the card has {:.1f}",
                           request.card.capability / 10.0);
    return nullptr;
  }
  if (matmul.k == 0 || !is_by_chunks(matmul.transpose_a ? matmul.m : matmul.k) ||
      !is_by_chunks(matmul.transpose_b ? matmul.k : matmul.n) || !is_by_chunks(matmul.n)) {
    *why_not = "needs rows of whole 16 bytes";
    return nullptr;
  }
  const ClusterWay way = best_way(matmul, request.card);
  if (!matmul.fits(64) || way.tiles * way.steps >= int64_t{1} << 30) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  if (matmul.flops() < kFewestFlops || other_cycles(matmul, request.card) < way.cycles()) {
    *why_not = fmt::format("{} is too small: smaller tiles are faster", request.output(0).text());
    return nullptr;
  }
  return cluster_matmul(request, way.tile->columns, way.shares);
}

}  // namespace fullbore::cuda
