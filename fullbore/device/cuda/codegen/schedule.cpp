#include "fullbore/device/cuda/codegen/schedule.h"

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

// Neighbours pay where each of the threads writes in one piece; what only reads, where it does so at least once.
void choose_copies(const KernelIr& kernel, const LoopPlacement& placement, Schedule& schedule) {
  const double weight = weight_of(kernel);
  schedule.copies = weight <= 8 ? 4 : weight <= 20 ? 2 : 1;
  schedule.aligned.assign(accesses(kernel).size(), false);
  if (schedule.scans) schedule.copies = 1;
  if (schedule.kind == Schedule::Kind::columns || schedule.scans) return;
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
  schedule.wide = true;
  schedule.copies = copies;
  schedule.aligned = std::move(aligned);
}

constexpr int64_t kWantedBlocks = 512;  // a few for each multiprocessor
constexpr int64_t kLeastSteps = 16;     // that a thread makes of a chunk

// Few rows or lanes with much to reduce: chunks.
void split(const KernelIr& kernel, const LoopPlacement& placement, Schedule& schedule,
           int64_t threads) {
  const int64_t points = reduced_points(kernel);
  schedule.chunk_points = points;
  const bool one_walk =
      placement.walks == 1 &&
      std::none_of(placement.in_walk.begin(), placement.in_walk.end(), [](bool in) { return in; });
  if (!one_walk || schedule.scans || schedule.blocks == 0) return;
  const int64_t step = threads * schedule.copies;
  const int64_t wanted =
      std::min(divide_up(kWantedBlocks, schedule.blocks), points / (step * kLeastSteps));
  if (wanted <= 1) return;
  schedule.chunk_points = divide_up(divide_up(points, wanted), step) * step;
  schedule.chunks = divide_up(points, schedule.chunk_points);
  schedule.splits = schedule.chunks > 1;
  schedule.blocks *= schedule.chunks;
}

void schedule_map(const KernelIr& kernel, Schedule& schedule) {
  const int64_t groups = divide_up(kernel.lanes, schedule.copies);
  const int64_t across = std::min<int64_t>(kMostThreads, power_of_two_from(groups));
  schedule.block = {static_cast<uint32_t>(across), static_cast<uint32_t>(kMostThreads / across), 1};
  schedule.lane_blocks = divide_up(groups, across);
  schedule.blocks = schedule.lane_blocks * divide_up(kernel.rows(), kMostThreads / across);
  if (kernel.lanes == 0) schedule.blocks = 0;
}

void schedule_rows(const KernelIr& kernel, const LoopPlacement& placement, Schedule& schedule) {
  constexpr int64_t kWarp = 32;
  const int64_t points = reduced_points(kernel);
  const bool long_rows = points >= 2048 || (points >= 512 && kernel.rows() < kWantedBlocks);
  int64_t threads = kWarp;
  if (schedule.scans) {
    schedule.group = kWarp;
  } else if (long_rows) {
    schedule.group = 0;
    threads = std::clamp<int64_t>(power_of_two_from(divide_up(points, 8)), 64, kMostThreads);
  } else {
    schedule.group =
        static_cast<int>(std::clamp<int64_t>(power_of_two_from(divide_up(points, 4)), 1, kWarp));
    threads = schedule.group;
  }
  if (schedule.group == 0) {
    schedule.block = {static_cast<uint32_t>(threads), 1, 1};
    schedule.blocks = kernel.rows();
  } else {
    schedule.block = {128, 1, 1};
    schedule.blocks = divide_up(kernel.rows(), 128 / schedule.group);
  }
  split(kernel, placement, schedule, threads);
}

void schedule_columns(const KernelIr& kernel, const LoopPlacement& placement, Schedule& schedule) {
  const bool shares = !schedule.scans && reduced_points(kernel) >= 2 * kColumnThreads;
  schedule.group = shares ? kColumnThreads : 1;
  const int64_t lanes = shares ? kColumnLanes : 128;
  schedule.block = {static_cast<uint32_t>(lanes), static_cast<uint32_t>(schedule.group), 1};
  schedule.lane_blocks = divide_up(kernel.lanes, lanes);
  schedule.blocks = schedule.lane_blocks * kernel.rows();
  split(kernel, placement, schedule, schedule.group);
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

std::string Schedule::text() const {
  std::string bits;
  for (bool each : aligned) bits += each ? '1' : '0';
  return fmt::format("kind={} group={} copies={}{}{}{}{} aligned={}\n", static_cast<int>(kind),
                     group, copies, wide ? " wide" : "", narrow ? " narrow" : "",
                     scans ? " scans" : "", splits ? " splits" : "", bits);
}

Schedule make_schedule(const KernelIr& kernel, const LoopPlacement& placement) {
  Schedule schedule;
  bool reduces = false;
  for (const Instruction& instruction : kernel.instructions) {
    schedule.scans = schedule.scans || instruction.kind == Kind::scan;
    reduces = reduces || instruction.kind == Kind::reduce;
  }
  schedule.narrow = is_narrow(kernel);
  if (kernel.columns())
    schedule.kind = Schedule::Kind::columns;
  else if (reduces || schedule.scans || !kernel.serial.empty())
    schedule.kind = Schedule::Kind::rows;
  choose_copies(kernel, placement, schedule);
  switch (schedule.kind) {
    case Schedule::Kind::map: schedule_map(kernel, schedule); break;
    case Schedule::Kind::rows: schedule_rows(kernel, placement, schedule); break;
    case Schedule::Kind::columns: schedule_columns(kernel, placement, schedule); break;
  }
  return schedule;
}

}  // namespace fullbore::cuda
