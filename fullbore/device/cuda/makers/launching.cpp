#include "fullbore/device/cuda/makers/launching.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "fullbore/base/check.h"
#include "fullbore/device/cuda/embedded_ptx.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kRowThreads = 256;
constexpr int64_t kMostRowBlocks = 1 << 20;  ///< kernels walk on from there

/// One entry of a file's PTX, with all that stands before the first: version, target, declarations.
std::string text_of(std::string_view file, const std::string& entry) {
  constexpr std::string_view kEntry = ".visible .entry ";
  const std::string_view text = embedded_ptx(file);
  const size_t head = text.find(kEntry);
  const size_t begin = text.find(fmt::format("{}{}(", kEntry, entry));
  FB_CHECK(begin != std::string_view::npos, "kernels/{}.cpp has no entry {}", file, entry);
  const size_t end = std::min(text.find(kEntry, begin + 1), text.size());
  return fmt::format("{}{}", text.substr(0, head), text.substr(begin, end - begin));
}

std::shared_ptr<const Module> module_of(std::string_view file, const std::string& entry) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const Module>> all;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Module>& known = all[fmt::format("{}/{}", file, entry)];
  std::shared_ptr<const Module> module = known.lock();
  if (!module) {
    module = std::make_shared<const Module>(Module{entry, text_of(file, entry)});
    known = module;
  }
  return module;
}

}  // namespace

Launch launch(std::string_view file, const std::string& entry, Extent grid, Extent block,
              std::vector<Argument> arguments, int64_t dynamic_shared_bytes) {
  return {module_of(file, entry), entry, grid, block, dynamic_shared_bytes, std::move(arguments)};
}

RowLaunch::RowLaunch(int64_t rows, int64_t width) {
  const auto across = std::min(
      kRowThreads,
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, width)))));
  const int64_t down = kRowThreads / across;
  block = {.x = static_cast<uint32_t>(across), .y = static_cast<uint32_t>(down)};
  grid = {.x =
              static_cast<uint32_t>(std::clamp<int64_t>(divide_up(rows, down), 1, kMostRowBlocks))};
}

int32_t index_kind(DType dtype) {
  switch (dtype) {
    case DType::i64: return 0;
    case DType::i32: return 1;
    case DType::u8: return 2;
    case DType::i8: return 3;
    default: FB_CHECK(false, "{} as an index", dtype_name(dtype));
  }
}

double memory_nanoseconds(const CardFacts& card, int64_t bytes) {
  return static_cast<double>(bytes) * 1e9 / card.bytes_per_second * card.multiprocessors;
}

double flop_nanoseconds(const CardFacts& card, double flops) {
  return flops * 1e9 / card.flops_per_second * card.multiprocessors;
}

int64_t operand_bytes(const Request& request) {
  int64_t bytes = 0;
  for (const Value value : request.node.inputs) bytes += request.graph.type(value).bytes();
  for (const Value value : request.node.outputs) bytes += request.graph.type(value).bytes();
  return bytes;
}

std::string description_of(const Request& request) {
  std::string text(request.node.op->name);
  for (size_t i = 0; i < request.node.inputs.size(); ++i)
    text += fmt::format("{} {}", i > 0 ? "," : "", request.input(i).text());
  return text;
}

AxisView::AxisView(const Shape& shape, int64_t axis) : extent(shape[static_cast<int>(axis)]) {
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis) (i < axis ? outer : inner) *= shape[i];
}

}  // namespace fullbore::cuda
