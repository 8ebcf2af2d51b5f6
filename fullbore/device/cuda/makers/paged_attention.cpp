#include "fullbore/ops/paged_attention.h"

#include <fmt/format.h>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {

std::unique_ptr<CudaKernel> make_paged_attention(const Request& request, std::string* why_not) {
  constexpr uint32_t kThreads = 128;     // kernels/paged_attention.cpp
  constexpr int64_t kMostHeads = 65535;  // blocks along y
  std::vector<TensorType> types;
  for (size_t i = 0; i < request.node.inputs.size(); ++i) types.push_back(request.input(i));
  const PagedAttentionShape shape(types, request.node.attributes);
  const int64_t columns = shape.width <= 64 ? 64 : 256;
  if (shape.heads > kMostHeads || shape.rows > INT32_MAX || shape.pages > INT32_MAX ||
      shape.page_tokens > INT32_MAX || shape.width > INT32_MAX / 4) {
    *why_not = fmt::format("{} is too large", request.input(0).text());
    return nullptr;
  }
  const auto number = [](int64_t x) { return value(static_cast<int32_t>(x)); };
  const Extent grid{.x = static_cast<uint32_t>(shape.rows),
                    .y = static_cast<uint32_t>(shape.heads),
                    .z = static_cast<uint32_t>(divide_up(shape.width, columns))};
  const int64_t read =
      2 * shape.rows * shape.places() * shape.groups * shape.width * dtype_bytes(shape.pool_dtype);
  return std::make_unique<CudaKernel>(
      std::vector<Launch>{launch(
          "paged_attention",
          fmt::format("paged_attention_{}_{}_{}", columns, dtype_name(request.input(0).dtype),
                      dtype_name(shape.pool_dtype)),
          grid, {.x = kThreads},
          {operand(0), operand(1), operand(2), operand(3), operand(4), operand(5),
           number(shape.heads), number(shape.groups), number(shape.width), number(shape.pages),
           number(shape.page_tokens), value(index_kind(request.input(3).dtype)), value(shape.pool),
           value(shape.window), value(static_cast<float>(shape.scale))})},
      CudaKernel::Description{.text = description_of(request),
                              .nanoseconds = memory_nanoseconds(request.card, read)});
}

}  // namespace fullbore::cuda
