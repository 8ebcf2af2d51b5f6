#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::cuda {
namespace {

/// What both kernels read of a node: y [batches, m, n] = c + a b.
struct Matmul {
  bool transpose_a, transpose_b, adds;
  int64_t m, n, k, batches;

  explicit Matmul(const Request& request)
      : transpose_a(request.node.attributes.get<bool>("transpose_a")),
        transpose_b(request.node.attributes.get<bool>("transpose_b")),
        adds(request.node.op == op::matmul_add) {
    const Shape &a = request.input(0).shape, &y = request.output(0).shape;
    const int rank = y.rank();
    m = y[rank - 2];
    n = y[rank - 1];
    k = a[rank - (transpose_a ? 2 : 1)];
    batches = y.slice(0, rank - 2).elements();
  }

  /// Do all extents, and blocks of `tile` lines, fit the numbers that kernels have?
  bool fits(int64_t tile) const {
    return std::max({m, n, k, batches}) < (int64_t{1} << 30) && divide_up(m, tile) <= UINT16_MAX;
  }
  Extent grid(int64_t tile) const {
    return {.x = static_cast<uint32_t>(divide_up(n, tile)),
            .y = static_cast<uint32_t>(divide_up(m, tile)),
            .z = static_cast<uint32_t>(std::min<int64_t>(batches, UINT16_MAX))};
  }
  int64_t blocks(int64_t tile) const { return divide_up(n, tile) * divide_up(m, tile) * batches; }
  double flops() const {
    return 2 * static_cast<double>(batches) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
  Argument c() const { return adds ? operand(2) : null(); }
  Argument y() const { return operand(adds ? 3 : 2); }
};

Argument number(int64_t extent) { return value(static_cast<int32_t>(extent)); }

// c and y may be the same bytes: an element is read by the thread that writes it.
std::unique_ptr<CudaKernel> made(const Request& request, const Matmul& matmul, Launch launch,
                                 double share_of_peak) {
  std::vector<Launch> launches;
  launches.push_back(std::move(launch));
  CudaKernel::Description description{
      .text = description_of(request),
      .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                              flop_nanoseconds(request.card, matmul.flops() / share_of_peak))};
  if (matmul.adds) description.aliases = {{0, 2}};
  return std::make_unique<CudaKernel>(std::move(launches), std::move(description));
}

}  // namespace

std::unique_ptr<CudaKernel> make_plain_matmul(const Request& request, std::string* why_not) {
  constexpr int64_t kTile = 64;
  constexpr uint32_t kThreads = 256;
  const Matmul matmul(request);
  const DType dtype = request.input(0).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) {
    *why_not = fmt::format("needs f32 or f64, got {}", dtype_name(dtype));
    return nullptr;
  }
  if (!matmul.fits(kTile)) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  return made(request, matmul,
              launch("matmul", fmt::format("matmul_{}", dtype_name(dtype)), matmul.grid(kTile),
                     {.x = kThreads},
                     {operand(0), operand(1), matmul.c(), matmul.y(), number(matmul.m),
                      number(matmul.n), number(matmul.k), number(matmul.transpose_a),
                      number(matmul.transpose_b), number(matmul.batches)}),
              1.0 / 16);
}

std::unique_ptr<CudaKernel> make_tensor_core_matmul(const Request& request, std::string* why_not) {
  const Matmul matmul(request);
  const DType dtype = request.input(0).dtype;
  if (!is_low_precision(dtype)) {
    *why_not = fmt::format("needs bf16 or f16, got {}", dtype_name(dtype));
    return nullptr;
  }
  // Large tiles where they still give every multiprocessor a block.
  const int64_t tile = matmul.blocks(128) >= request.card.multiprocessors ? 128 : 64;
  if (!matmul.fits(tile)) {
    *why_not = fmt::format("{} is too large", request.output(0).text());
    return nullptr;
  }
  // kernels/matmul_tensor_core.cpp: three stages of 32 of k, rows padded by 8 elements.
  const auto stage = [&](bool depth_last) {
    return 2 * (depth_last ? tile * (32 + 8) : 32 * (tile + 8));
  };
  const int64_t shared = 3 * (stage(!matmul.transpose_a) + stage(matmul.transpose_b));
  const std::string entry =
      fmt::format("matmul_{}_{}{}_{}", dtype_name(dtype), matmul.transpose_a ? 1 : 0,
                  matmul.transpose_b ? 1 : 0, tile);
  return made(
      request, matmul,
      launch(
          "matmul_tensor_core", entry, matmul.grid(tile), {.x = tile == 128 ? 256U : 128U},
          {operand(0), operand(1), matmul.c(), matmul.y(), number(matmul.m), number(matmul.n),
           number(matmul.k), number(matmul.batches), number(request.output(0).dtype == DType::f32)},
          shared),
      0.6);
}

}  // namespace fullbore::cuda
