#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/random.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kSharedSortBytes = 32 << 10;  ///< kernels/sort.cpp
constexpr uint32_t kDrawThreads = 256;
constexpr int64_t kMostBlocks = 1 << 16;
constexpr int64_t kUnit = 16;  ///< bytes that a thread moves at most at once

int64_t row_bytes(const TensorType& x) {
  return x.shape.slice(1, x.shape.rank()).elements() * dtype_bytes(x.dtype);
}

std::unique_ptr<CudaKernel> made(const Request& request, std::vector<Launch> launches,
                                 int64_t bytes) {
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{.text = description_of(request),
                              .nanoseconds = memory_nanoseconds(request.card, bytes)});
}

}  // namespace

std::unique_ptr<CudaKernel> make_gather(const Request& request, std::string*) {
  const TensorType &x = request.input(0), &indices = request.input(1);
  const int64_t bytes = row_bytes(x), count = indices.elements();
  const RowLaunch rows(count, divide_up(bytes, kUnit));
  return made(request,
              {launch("moves", "gather", rows.grid, rows.block,
                      {operand(0), operand(1), operand(2), value(x.shape[0]), value(bytes),
                       value(count), value(index_kind(indices.dtype))})},
              indices.bytes() + 2 * request.output(0).bytes());
}

std::unique_ptr<CudaKernel> make_take_along_axis(const Request& request, std::string*) {
  const TensorType &x = request.input(0), &indices = request.input(1);
  const auto axis = request.node.attributes.get<int64_t>("axis");
  const AxisView source(x.shape, axis), view(indices.shape, axis);
  const RowLaunch rows(view.outer * view.extent, view.inner);
  return made(request,
              {launch("moves", fmt::format("take_along_axis_{}", dtype_bytes(x.dtype)), rows.grid,
                      rows.block,
                      {operand(0), operand(1), operand(2), value(view.outer), value(source.extent),
                       value(view.extent), value(view.inner), value(index_kind(indices.dtype))})},
              indices.bytes() + 2 * request.output(0).bytes());
}

std::unique_ptr<CudaKernel> make_update_rows(const Request& request, std::string*) {
  const TensorType &x = request.input(0), &indices = request.input(2);
  const int64_t bytes = row_bytes(x), count = indices.elements();
  const auto blocks = static_cast<uint32_t>(
      std::clamp<int64_t>(divide_up(x.bytes(), kUnit * kDrawThreads), 1, kMostBlocks));
  std::vector<Launch> launches = {launch("moves", "copy", {.x = blocks}, {.x = kDrawThreads},
                                         {operand(0), operand(3), value(x.bytes())})};
  if (count > 0)
    launches.push_back(launch("moves", "update_rows", {.x = static_cast<uint32_t>(count)},
                              {.x = 128},
                              {operand(1), operand(2), operand(3), value(x.shape[0]), value(bytes),
                               value(count), value(index_kind(indices.dtype))}));
  return std::make_unique<CudaKernel>(
      std::move(launches), CudaKernel::Description{.text = description_of(request),
                                                   .nanoseconds = memory_nanoseconds(
                                                       request.card, count * (2 * bytes + 8)),
                                                   .aliases = {{0, 0}}});
}

std::unique_ptr<CudaKernel> make_sort(const Request& request, std::string* why_not) {
  const TensorType& x = request.input(0);
  const int64_t extent = x.shape[x.shape.rank() - 1];
  constexpr int64_t kMostExtent = 1 << 26;
  const int64_t rows = x.elements() / extent;
  if (extent > kMostExtent || rows > INT32_MAX) {
    *why_not = fmt::format("{} has more than {} elements a row", x.text(), kMostExtent);
    return nullptr;
  }
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  const int64_t entry = dtype_bytes(x.dtype) == 8 ? 16 : 8;
  const bool is_shared = size * entry <= kSharedSortBytes;
  const auto threads = static_cast<uint32_t>(std::clamp<int64_t>(size / 2, 32, 512));
  const bool descending = request.node.attributes.get<bool>("descending");
  std::vector<Launch> launches = {
      launch("sort", fmt::format("sort_{}", dtype_name(x.dtype)),
             {.x = static_cast<uint32_t>(rows)}, {.x = threads},
             {operand(0), operand(1), operand(2), is_shared ? null() : operand(3),
              value(static_cast<int32_t>(extent)), value(static_cast<int32_t>(size)),
              value(int32_t{descending})})};
  // A network of log2(size)^2 / 2 layers, each of which reads and writes the row.
  const auto layers = std::bit_width(static_cast<uint64_t>(size));
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{
          .text = description_of(request),
          .nanoseconds = memory_nanoseconds(request.card, rows * size * entry * layers * layers),
          .scratch_bytes = is_shared ? 0 : rows * size * entry});
}

std::unique_ptr<CudaKernel> make_dropout_mask(const Request& request, std::string*) {
  const int64_t count = request.output(0).elements();
  const Attributes& attributes = request.node.attributes;
  const size_t inputs = request.node.inputs.size();
  const auto blocks = static_cast<uint32_t>(
      std::clamp<int64_t>(divide_up(count, kDrawElements * kDrawThreads), 1, kMostBlocks));
  return made(
      request,
      {launch(
          "random", "dropout_mask", {.x = blocks}, {.x = kDrawThreads},
          {operand(0), operand(1), inputs == 3 ? operand(2) : null(), operand(inputs), value(count),
           value(attributes.get<int64_t>("site")),
           value(static_cast<int32_t>(dropout_threshold(attributes.get<double>("probability"))))})},
      count);
}

}  // namespace fullbore::cuda
