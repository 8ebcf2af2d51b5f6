#include "fullbore/ops/fp8_matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

constexpr int kFirstCapability = 89;
constexpr int kFirstDriver = 12040;  // the first to take PTX 8.4

}  // namespace

std::string why_no_fp8(const CardFacts& card) {
  if (card.capability < kFirstCapability)
    return fmt::format("compute capability 8.9 or later is needed, the card has {:.1f}",
                       card.capability / 10.0);
  if (card.driver < kFirstDriver)
    return fmt::format("a driver of CUDA 12.4 or later is needed, this one is of {}.{}",
                       card.driver / 1000, card.driver % 1000 / 10);
  return "";
}

std::unique_ptr<CudaKernel> make_fp8_matmul(const Request& request, std::string* why_not) {
  const TensorType &a = request.input(0), &y = request.output(0);
  const Attributes& attributes = request.node.attributes;
  *why_not = why_no_fp8(request.card);
  if (!why_not->empty()) return nullptr;
  if (a.dtype != DType::f32 && a.dtype != DType::bf16) {
    *why_not = fmt::format("needs f32 or bf16, got {}", dtype_name(a.dtype));
    return nullptr;
  }
  const bool transpose_a = attributes.get<bool>("transpose_a");
  const bool transpose_b = attributes.get<bool>("transpose_b");
  const int64_t m = y.shape[0], n = y.shape[1], k = a.shape[transpose_a ? 0 : 1];
  // Large tiles where there are some and they still give every multiprocessor a block.
  const bool is_large = a.dtype == DType::bf16 &&
                        divide_up(m, 128) * divide_up(n, 128) >= request.card.multiprocessors;
  const int64_t tile = is_large ? 128 : 64;
  if (std::max({m, n, k}) >= (int64_t{1} << 30) || divide_up(m, tile) > UINT16_MAX) {
    *why_not = fmt::format("{} is too large", y.text());
    return nullptr;
  }
  // kernels/matmul_fp8_sm89.cpp: two stages of 64 of k, rows padded by 16 bytes.
  const int64_t shared = tile * 2 * 2 * (64 + 16);
  const auto number = [](int64_t of) { return value(static_cast<int32_t>(of)); };
  const auto is_wide = [&](size_t input) { return request.input(input).dtype == DType::f32; };
  const std::string entry = fmt::format("fp8_matmul_{}_{}_{}_{}", dtype_name(a.dtype),
                                        attributes.get<std::string>("format_a"),
                                        attributes.get<std::string>("format_b"), tile);
  std::vector<Launch> launches = {
      launch("matmul_fp8_sm89", entry,
             {.x = static_cast<uint32_t>(divide_up(n, tile)),
              .y = static_cast<uint32_t>(divide_up(m, tile))},
             {.x = is_large ? 256U : 128U},
             {operand(0), operand(1), operand(2), operand(3), operand(4), number(m), number(n),
              number(k), number(transpose_a), number(transpose_b), number(y.dtype == DType::f32),
              number((is_wide(2) ? 1 : 0) | (is_wide(3) ? 2 : 0))},
             shared)};
  // Not measured: by warps tensor cores are not kept busy, and reach what bf16 by warpgroups does.
  const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{
          .text = description_of(request),
          .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                                  flop_nanoseconds(request.card, flops))});
}

}  // namespace fullbore::cuda
