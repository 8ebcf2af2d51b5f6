#include "fullbore/device/cuda/codegen/generated_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cuda/codegen/ptx_compiler.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/device/kernel_ir/overlay.h"
#include "fullbore/device/kernel_ir/partition.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
constexpr int64_t kMostParameterBytes = 4096;
constexpr int64_t kPartialBytes = 8;

/// A piece of a node as launches.
struct Piece {
  std::vector<Launch> launches;
  int64_t scratch_bytes = 0;
  jit::KernelWork work;
};

Argument by_value(int64_t number, bool narrow) {
  Argument argument;
  argument.bytes.resize(narrow ? sizeof(int32_t) : sizeof(int64_t));
  const auto half = static_cast<int32_t>(number);
  if (narrow)
    std::memcpy(argument.bytes.data(), &half, sizeof(half));
  else
    std::memcpy(argument.bytes.data(), &number, sizeof(number));
  return argument;
}

Result<Piece> make_piece(const jit::LoweredPiece& lowered, int scratch_operand) {
  const jit::KernelIr& kernel = lowered.kernel;
  const jit::LoopPlacement placement = jit::place_in_loops(kernel, false);
  const ThreadMapping mapping = map_threads(kernel, placement);
  Piece piece;
  piece.work = jit::kernel_work(kernel);
  if (mapping.blocks == 0) return piece;
  if (mapping.blocks > kMostBlocks) return Failure{"it has more elements than a grid"};
  const Result<GeneratedCode> compiled = compile_to_ptx(kernel, placement, mapping);
  if (!compiled.ok()) return Failure{compiled.error()};
  const GeneratedCode& code = compiled.value();

  std::vector<Argument> arguments;
  for (int buffer : lowered.buffers) arguments.push_back({.operand = buffer});
  if (mapping.splits) arguments.push_back({.operand = scratch_operand});
  const std::vector<int64_t> numbers =
      jit::parameters(kernel, {.rows_per_item = mapping.chunk_points,
                               .lanes_per_item = mapping.chunks,
                               .lane_blocks = mapping.lane_blocks});
  for (int64_t number : numbers) arguments.push_back(by_value(number, mapping.narrow));
  int64_t bytes = 0;
  for (const Argument& each : arguments)
    bytes += each.operand >= 0 ? 8 : static_cast<int64_t>(each.bytes.size());
  if (bytes > kMostParameterBytes) return Failure{"it has too many operands"};

  piece.launches.push_back({.module = code.module,
                            .entry = code.entry,
                            .grid = {static_cast<uint32_t>(mapping.blocks), 1, 1},
                            .block = mapping.block,
                            .arguments = arguments});
  if (mapping.splits) {
    const int64_t results = result_count(kernel);
    const int64_t threads = results * (mapping.combines_by_warps ? 32 : 1);
    const auto reduced = static_cast<int64_t>(reductions(kernel).size());
    piece.scratch_bytes = results * mapping.chunks * reduced * kPartialBytes;
    piece.launches.push_back(
        {.module = code.module,
         .entry = code.combines,
         .grid = {static_cast<uint32_t>((threads + kMostThreads - 1) / kMostThreads), 1, 1},
         .block = {kMostThreads, 1, 1},
         .arguments = std::move(arguments)});
  }
  return piece;
}

// Threads that share a row all read what is the same in the row, and one of them writes its results: another may not
// have read yet.
bool shares_reads(const jit::LoweredPiece& piece, int input) {
  const jit::KernelIr& kernel = piece.kernel;
  const jit::LoopPlacement placement = jit::place_in_loops(kernel, false);
  const ThreadMapping mapping = map_threads(kernel, placement);
  if (mapping.kind == ThreadMapping::Kind::map) return false;
  if (mapping.group == 1 && !mapping.combines_by_warps) return false;
  for (size_t id = 0; id < kernel.instructions.size(); ++id) {
    const jit::Instruction& each = kernel.instructions[id];
    if (each.kind == jit::Instruction::Kind::load && placement.scope[id] <= jit::Scope::row &&
        piece.buffers[static_cast<size_t>(each.access.buffer)] == input)
      return true;
  }
  return false;
}

// An element that several points of the loops read, such as a scalar, belongs to no one thread either.
std::vector<std::pair<int, int>> aliases_of(const Request& request,
                                            const jit::LoweredNode& lowered) {
  std::vector<std::pair<int, int>> aliases;
  if (lowered.pieces.size() != 1) return aliases;
  const jit::LoweredPiece& piece = lowered.pieces[0];
  const auto inputs = static_cast<int>(request.node.inputs.size());
  for (int input = 0; input < inputs; ++input) {
    if (shares_reads(piece, input)) continue;
    for (int output = 0; output < static_cast<int>(request.node.outputs.size()); ++output) {
      const int64_t elements = request.output(static_cast<size_t>(output)).elements();
      if (elements == piece.kernel.points() && jit::overlays(piece, input, inputs + output))
        aliases.emplace_back(output, input);
    }
  }
  return aliases;
}

bool is_empty(const Request& request) {
  for (size_t i = 0; i < request.node.outputs.size(); ++i)
    if (request.output(i).elements() > 0) return false;
  return request.node.body == nullptr;
}

// On one multiprocessor, whose rate without tensor cores is about an eighth of what the card promises with them.
double nanoseconds_of(const jit::KernelWork& work, size_t launches, const CardFacts& card) {
  constexpr double kLaunch = 1000;
  const double share = 1e9 * card.multiprocessors;
  return kLaunch * static_cast<double>(launches) +
         std::max(work.bytes / card.bytes_per_second, work.flops / (card.flops_per_second / 8)) *
             share;
}

}  // namespace

std::unique_ptr<CudaKernel> make_generated_kernel(const Request& request, std::string* why_not) {
  const Node& node = request.node;
  if (is_empty(request))
    return std::make_unique<CudaKernel>(std::vector<Launch>{},
                                        CudaKernel::Description{.text = "nothing to do"});
  const std::optional<jit::LoweredNode> lowered = jit::lower(request.graph, node, why_not);
  if (!lowered) return nullptr;
  const auto scratch = static_cast<int>(node.inputs.size() + node.outputs.size());
  std::vector<Launch> launches;
  CudaKernel::Description description;
  jit::KernelWork work;
  for (const jit::LoweredPiece& each : lowered->pieces) {
    Result<Piece> made = make_piece(each, scratch);
    if (!made.ok()) {
      if (why_not != nullptr) *why_not = made.error();
      return nullptr;
    }
    Piece& piece = made.value();
    for (Launch& launch : piece.launches) launches.push_back(std::move(launch));
    description.scratch_bytes = std::max(description.scratch_bytes, piece.scratch_bytes);
    work.flops += piece.work.flops;
    work.bytes += piece.work.bytes;
  }
  description.text = fmt::format(
      "generated {} {}", node.body ? jit::ops_text(node.body->nodes()) : std::string(node.op->name),
      request.output(0).text());
  description.nanoseconds = nanoseconds_of(work, launches.size(), request.card);
  description.aliases = aliases_of(request, *lowered);
  return std::make_unique<CudaKernel>(std::move(launches), std::move(description));
}

}  // namespace fullbore::cuda
