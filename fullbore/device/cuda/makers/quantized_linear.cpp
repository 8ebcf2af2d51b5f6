#include "fullbore/ops/quantized_linear.h"

#include <fmt/format.h>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {

std::unique_ptr<CudaKernel> make_quantized_linear(const Request& request, std::string* why_not) {
  // As kernels/quantized_linear.cpp has them.
  constexpr uint32_t kThreads = 128;
  constexpr int64_t kDepth = 32;
  constexpr int64_t kFewRows = 16;
  const TensorType &x = request.input(0), &weight = request.input(1);
  const int64_t columns = weight.shape[0], depth = weight.shape[1];
  const int64_t rows = x.elements() / depth;
  const bool few = rows <= kFewRows;
  const int64_t blocks = few ? divide_up(rows, kFewRows) * divide_up(columns, 8)
                             : divide_up(rows, 64) * divide_up(columns, 64);
  if (rows > INT32_MAX || columns > INT32_MAX || blocks > INT32_MAX) {
    *why_not = fmt::format("{} is too large", x.text());
    return nullptr;
  }
  const auto number = [](int64_t n) { return value(static_cast<int32_t>(n)); };
  const int64_t pitch = divide_up(depth, kDepth) * kDepth, rounded_bytes = rows * pitch;
  const Argument rounded = operand(4);
  Argument scales = operand(4);
  scales.offset = rounded_bytes;
  const std::string_view dtype = dtype_name(x.dtype);
  std::vector<Launch> launches = {
      launch("quantized_linear", fmt::format("quantized_linear_round_{}", dtype),
             {.x = static_cast<uint32_t>(rows)}, {.x = kThreads},
             {operand(0), rounded, scales, number(depth), number(pitch)}),
      launch("quantized_linear", fmt::format("quantized_linear_{}_{}", few ? "few" : "many", dtype),
             {.x = static_cast<uint32_t>(blocks)}, {.x = kThreads},
             {rounded, scales, operand(1), operand(2), operand(3), number(rows), number(columns),
              number(depth), number(pitch), number(request.input(2).dtype == DType::f32)})};
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{.text = description_of(request),
                              .nanoseconds = memory_nanoseconds(
                                  request.card, operand_bytes(request) + 2 * rounded_bytes),
                              .scratch_bytes = rounded_bytes + rows * int64_t{sizeof(float)}});
}

}  // namespace fullbore::cuda
