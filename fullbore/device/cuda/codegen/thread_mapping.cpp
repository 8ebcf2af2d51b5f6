#include "fullbore/device/cuda/codegen/thread_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace fullbore::cuda {
namespace {

using jit::Access;
using jit::Form;
using jit::Instruction;
using jit::KernelIr;
using jit::LoopPlacement;
using Kind = Instruction::Kind;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

// Operations of one point.
double weight_of(const KernelIr& kernel) {
  double weight = 0;
  for (const Instruction& instruction : kernel.instructions) {
    if (instruction.kind != Kind::scalar)
      weight += 0.5;
    else
      weight += is_philox(instruction.op) ? 40 : std::max(1.0, scalar_op_flops(instruction.op));
  }
  return weight;
}

// Do 32 bits hold every index, and what is added to one on the way?
bool is_narrow(const KernelIr& kernel) {
  constexpr int64_t kMost = int64_t{1} << 30;
  std::vector<int64_t> largest;
  for (const std::vector<int64_t>* loops : {&kernel.outer, &kernel.serial})
    for (int64_t extent : *loops) largest.push_back(extent);
  largest.push_back(kernel.lanes);
  for (const jit::Symbol& symbol : kernel.symbols) largest.push_back(symbol.limit);
  bool narrow = kernel.rows() < kMost && reduced_points(kernel) < kMost && kernel.lanes < kMost &&
                result_count(kernel) < kMost && kernel.points() < kMost * 1024;
  jit::for_each_form(kernel, [&](const Form& form, const jit::Predicate* predicate) {
    double sum = std::abs(static_cast<double>(form.offset));
    for (size_t i = 0; i < form.coefficients.size(); ++i)
      sum += std::abs(static_cast<double>(form.coefficients[i])) * static_cast<double>(largest[i]);
    narrow = narrow && sum < static_cast<double>(kMost);
    if (predicate != nullptr) narrow = narrow && predicate->limit < kMost;
  });
  return narrow;
}

bool contiguous(const KernelIr& kernel, const Access& access) {
  return access.divisor == 1 && kernel.lane_coefficient(access.address) == 1;
}

// Is each group of `copies` lanes in one place, a multiple of `copies` elements from the start of the buffer?
bool is_aligned(const KernelIr& kernel, const Access& access, int64_t copies) {
  if (!contiguous(kernel, access) || access.address.offset % copies != 0) return false;
  for (const jit::Predicate& predicate : access.predicates)
    if (kernel.lane_coefficient(predicate.form) != 0) return false;
  for (int i = 0; i < static_cast<int>(access.address.coefficients.size()); ++i)
    if (i != kernel.lane_loop() &&
        access.address.coefficients[static_cast<size_t>(i)] % copies != 0)
      return false;
  return true;
}

// Neighbours that make 16 bytes of the widest element.
int wide_copies(const KernelIr& kernel) {
  int64_t widest = 2;
  for (const Access* access : accesses(kernel))
    if (contiguous(kernel, *access))
      widest =
          std::max(widest, dtype_bytes(kernel.buffers[static_cast<size_t>(access->buffer)].dtype));
  return static_cast<int>(16 / widest);
}

// Steps that threads read at once where a warp, or a block, adds up a row.
constexpr int kScanCopies = 8;

// Neighbours pay where each of the threads writes in one piece; what only reads, where it does so at least once.
void choose_copies(const KernelIr& kernel, const LoopPlacement& placement, ThreadMapping& mapping) {
  const double weight = weight_of(kernel);
  const bool is_light_column = mapping.kind == ThreadMapping::Kind::columns && weight <= 6;
  mapping.copies = is_light_column ? 8 : weight <= 8 ? 4 : weight <= 20 ? 2 : 1;
  mapping.aligned.assign(accesses(kernel).size(), false);
  if (mapping.scans) {
    // A warp has a row to itself: what it reads of it must not wait for what it has added up.
    const bool is_column = mapping.kind == ThreadMapping::Kind::columns;
    mapping.copies = is_column ? 1 : weight <= 8 ? kScanCopies : weight <= 40 ? 4 : 1;
    return;
  }
  if (mapping.kind == ThreadMapping::Kind::columns) return;
  const int copies = weight > 60 ? 2 : wide_copies(kernel);
  // Neighbours have the same serial indices.
  if (kernel.lanes < copies || (!kernel.serial.empty() && kernel.lanes % copies != 0)) return;
  bool some = false, all_stores = true;
  const std::vector<const Access*> all = accesses(kernel);
  std::vector<bool> aligned;
  for (const Access* access : all) {
    aligned.push_back(is_aligned(kernel, *access, copies));
    some = some || aligned.back();
  }
  for (size_t s = 0; s < kernel.stores.size(); ++s)
    if (placement.in_walk[s])
      all_stores = all_stores && aligned[all.size() - kernel.stores.size() + s];
  if (!some || !all_stores) return;
  mapping.wide = true;
  mapping.copies = copies;
  mapping.aligned = std::move(aligned);
}

constexpr int64_t kWantedBlocks = 512;  // a few for each multiprocessor
// A column's thread reads few bytes at a time: as much is on its way at once where there are more of them. Sums of 16384 rows
// by 768 columns took 41 us on an H200, for bytes that it moves in 12.
constexpr int64_t kWantedColumnBlocks = 2048;
constexpr int64_t kLeastSteps = 8;  // that a thread makes of a chunk

// Few rows or lanes with much to reduce: chunks.
void split(const KernelIr& kernel, const LoopPlacement& placement, ThreadMapping& mapping,
           int64_t threads) {
  const int64_t points = reduced_points(kernel);
  mapping.chunk_points = points;
  const bool one_walk =
      placement.walks == 1 &&
      std::none_of(placement.in_walk.begin(), placement.in_walk.end(), [](bool in) { return in; });
  if (!one_walk || mapping.scans || mapping.blocks == 0) return;
  const int64_t step = threads * mapping.copies;
  const int64_t blocks =
      mapping.kind == ThreadMapping::Kind::columns ? kWantedColumnBlocks : kWantedBlocks;
  const int64_t wanted = std::min(divide_up(blocks, mapping.blocks), points / (step * kLeastSteps));
  if (wanted <= 1) return;
  mapping.chunk_points = divide_up(divide_up(points, wanted), step) * step;
  mapping.chunks = divide_up(points, mapping.chunk_points);
  mapping.splits = mapping.chunks > 1;
  mapping.blocks *= mapping.chunks;
  // A thread that goes through many chunks waits for one after another.
  constexpr int64_t kWarp = 32, kFewResults = 1 << 14;
  mapping.combines_by_warps =
      mapping.splits && mapping.chunks >= kWarp / 2 && result_count(kernel) <= kFewResults;
}

void map_lanes(const KernelIr& kernel, ThreadMapping& mapping) {
  const int64_t groups = divide_up(kernel.lanes, mapping.copies);
  const int64_t across = std::min<int64_t>(kMostThreads, power_of_two_from(groups));
  mapping.block = {static_cast<uint32_t>(across), static_cast<uint32_t>(kMostThreads / across), 1};
  mapping.lane_blocks = divide_up(groups, across);
  mapping.blocks = mapping.lane_blocks * divide_up(kernel.rows(), kMostThreads / across);
  if (kernel.lanes == 0) mapping.blocks = 0;
}

void map_rows(const KernelIr& kernel, const LoopPlacement& placement, ThreadMapping& mapping) {
  constexpr int64_t kWarp = 32;
  const int64_t points = reduced_points(kernel);
  const bool long_rows = points >= 2048 || (points >= 512 && kernel.rows() < kWantedBlocks);
  int64_t threads = kWarp;
  if (long_rows) {
    constexpr int64_t kVeryLongRow = 16384;
    mapping.group = 0;
    mapping.by_large_blocks = (placement.walks > 1 || mapping.scans) && points >= kVeryLongRow;
    threads = mapping.by_large_blocks
                  ? kMostRowThreads
                  : std::clamp<int64_t>(power_of_two_from(divide_up(points, 8)), 64, kMostThreads);
  } else if (mapping.scans) {
    mapping.group = kWarp;
  } else {
    mapping.group =
        static_cast<int>(std::clamp<int64_t>(power_of_two_from(divide_up(points, 4)), 1, kWarp));
    threads = mapping.group;
  }
  if (mapping.group == 0) {
    mapping.block = {static_cast<uint32_t>(threads), 1, 1};
    mapping.blocks = kernel.rows();
  } else {
    mapping.block = {128, 1, 1};
    mapping.blocks = divide_up(kernel.rows(), 128 / mapping.group);
  }
  split(kernel, placement, mapping, threads);
}

void map_columns(const KernelIr& kernel, const LoopPlacement& placement, ThreadMapping& mapping) {
  const bool shares = !mapping.scans && reduced_points(kernel) >= 2 * kColumnThreads;
  mapping.group = shares ? kColumnThreads : 1;
  const int64_t lanes = shares ? kColumnLanes : 128;
  mapping.block = {static_cast<uint32_t>(lanes), static_cast<uint32_t>(mapping.group), 1};
  mapping.lane_blocks = divide_up(kernel.lanes, lanes);
  mapping.blocks = mapping.lane_blocks * kernel.rows();
  split(kernel, placement, mapping, mapping.group);
}

}  // namespace

int64_t reduced_points(const KernelIr& kernel) {
  int64_t points = kernel.columns() ? 1 : kernel.lanes;
  for (int64_t extent : kernel.serial) points *= extent;
  return points;
}

int64_t result_count(const KernelIr& kernel) {
  return kernel.columns() ? kernel.rows() * kernel.lanes : kernel.rows();
}

std::vector<size_t> reductions(const KernelIr& kernel) {
  std::vector<size_t> ids;
  for (size_t id = 0; id < kernel.instructions.size(); ++id)
    if (kernel.instructions[id].kind == Kind::reduce) ids.push_back(id);
  return ids;
}

std::vector<const Access*> accesses(const KernelIr& kernel) {
  std::vector<const Access*> all;
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind == Kind::load) all.push_back(&instruction.access);
  for (const jit::Store& store : kernel.stores) all.push_back(&store.access);
  return all;
}

std::string ThreadMapping::text() const {
  std::string bits;
  for (bool each : aligned) bits += each ? '1' : '0';
  return fmt::format(
      "kind={} group={} copies={}{}{}{}{}{}{} aligned={}\n", static_cast<int>(kind), group, copies,
      wide ? " wide" : "", narrow ? " narrow" : "", scans ? " scans" : "", splits ? " splits" : "",
      combines_by_warps ? " combines by warps" : "", by_large_blocks ? " large blocks" : "", bits);
}

ThreadMapping map_threads(const KernelIr& kernel, const LoopPlacement& placement) {
  ThreadMapping mapping;
  bool reduces = false;
  for (const Instruction& instruction : kernel.instructions) {
    mapping.scans = mapping.scans || instruction.kind == Kind::scan;
    reduces = reduces || instruction.kind == Kind::reduce;
  }
  mapping.narrow = is_narrow(kernel);
  if (kernel.columns())
    mapping.kind = ThreadMapping::Kind::columns;
  else if (reduces || mapping.scans || !kernel.serial.empty())
    mapping.kind = ThreadMapping::Kind::rows;
  choose_copies(kernel, placement, mapping);
  switch (mapping.kind) {
    case ThreadMapping::Kind::map: map_lanes(kernel, mapping); break;
    case ThreadMapping::Kind::rows: map_rows(kernel, placement, mapping); break;
    case ThreadMapping::Kind::columns: map_columns(kernel, placement, mapping); break;
  }
  return mapping;
}

}  // namespace fullbore::cuda
