#include <fmt/format.h>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

// kernels/scatter.cpp
constexpr int64_t kTileThreads = 256, kMostTileRows = 16, kLeastTileColumns = 32;

/// What a block of scatter_add makes. Large tiles read the indices less often; but each multiprocessor has a block, and a
/// column of few has several threads.
struct ScatterTile {
  ScatterTile(int64_t rows, int64_t width, int64_t wanted_blocks) {
    while (columns > kLeastTileColumns && columns / 2 >= width) columns /= 2;
    while (rows_of_tile > 1 && blocks(rows, width) < wanted_blocks) rows_of_tile /= 2;
    while (columns > kLeastTileColumns && blocks(rows, width) < wanted_blocks) columns /= 2;
  }
  int64_t blocks(int64_t rows, int64_t width) const {
    return divide_up(rows, rows_of_tile) * divide_up(width, columns);
  }
  int64_t rows_of_tile = kMostTileRows, columns = kTileThreads;
};

std::unique_ptr<CudaKernel> made(const Request& request, Launch launch, int64_t bytes) {
  std::vector<Launch> launches;
  launches.push_back(std::move(launch));
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{.text = description_of(request),
                              .nanoseconds = memory_nanoseconds(request.card, bytes)});
}

std::string entry(std::string_view name, DType dtype) {
  return fmt::format("{}_{}", name, dtype_name(dtype));
}

}  // namespace

std::unique_ptr<CudaKernel> make_gather_sum(const Request& request, std::string*) {
  const TensorType &x = request.input(0), &indices = request.input(1);
  const int64_t from = x.shape[0], rows = indices.shape[0], terms = indices.shape[1];
  const int64_t width = x.shape.slice(1, x.shape.rank()).elements();
  const bool is_counted = request.node.inputs.size() > 3;
  const Argument count = is_counted ? operand(3) : null();
  const Argument inverse_count = is_counted ? operand(4) : null();
  const size_t y = is_counted ? 5 : 3;
  const int64_t bytes = (terms + 1) * request.output(0).bytes() + indices.bytes();
  if (terms == 1) {
    const int64_t row_bytes = width * dtype_bytes(x.dtype);
    const RowLaunch over(rows, divide_up(row_bytes, 16));
    return made(request,
                launch("moves", "compact", over.grid, over.block,
                       {operand(0), operand(1), count, inverse_count, operand(y), value(rows),
                        value(from), value(row_bytes)}),
                bytes);
  }
  const RowLaunch over(rows, width);
  return made(request,
              launch("scatter", entry("gather_sum", x.dtype), over.grid, over.block,
                     {operand(0), operand(1), count, inverse_count, operand(y), value(rows),
                      value(from), value(terms), value(width)}),
              bytes);
}

std::unique_ptr<CudaKernel> make_scatter_add(const Request& request, std::string* why_not) {
  const TensorType &updates = request.input(0), &indices = request.input(1);
  const TensorType& y = request.output(0);
  const int64_t rows = y.shape[0], count = indices.elements();
  const int64_t width = y.elements() / rows;
  const ScatterTile tile(rows, width, 2 * request.card.multiprocessors);
  const int64_t across = divide_up(width, tile.columns);
  if (across > UINT16_MAX) {
    *why_not = fmt::format("rows of {} elements are too wide", width);
    return nullptr;
  }
  return made(
      request,
      launch("scatter", entry("scatter_add", updates.dtype),
             {.x = static_cast<uint32_t>(divide_up(rows, tile.rows_of_tile)),
              .y = static_cast<uint32_t>(across)},
             {.x = static_cast<uint32_t>(kTileThreads)},
             {operand(0), operand(1), operand(2), value(rows), value(width), value(count),
              value(index_kind(indices.dtype)), value(static_cast<int32_t>(tile.rows_of_tile)),
              value(static_cast<int32_t>(tile.columns))}),
      operand_bytes(request) + tile.blocks(rows, width) * indices.bytes());
}

std::unique_ptr<CudaKernel> make_scatter_along_axis(const Request& request, std::string*) {
  const TensorType &updates = request.input(0), &indices = request.input(1);
  const auto axis = request.node.attributes.get<int64_t>("axis");
  const AxisView view(indices.shape, axis), target(request.output(0).shape, axis);
  const RowLaunch over(target.outer * target.extent, target.inner);
  return made(request,
              launch("scatter", entry("scatter_along_axis", updates.dtype), over.grid, over.block,
                     {operand(0), operand(1), operand(2), value(target.outer), value(target.extent),
                      value(view.extent), value(target.inner), value(index_kind(indices.dtype))}),
              operand_bytes(request) + target.extent * indices.bytes());
}

std::unique_ptr<CudaKernel> make_scatter_max(const Request& request, std::string*) {
  const TensorType &x = request.input(0), &indices = request.input(2);
  const auto axis = request.node.attributes.get<int64_t>("axis");
  const AxisView view(indices.shape, axis), target(x.shape, axis);
  const RowLaunch over(target.outer * target.extent, target.inner);
  return made(request,
              launch("scatter", entry("scatter_max", x.dtype), over.grid, over.block,
                     {operand(0), operand(1), operand(2), operand(3), value(target.outer),
                      value(target.extent), value(view.extent), value(target.inner),
                      value(index_kind(indices.dtype))}),
              operand_bytes(request) + target.extent * indices.bytes());
}

}  // namespace fullbore::cuda
