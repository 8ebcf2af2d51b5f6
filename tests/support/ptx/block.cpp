#include "tests/support/ptx/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/support/ptx/meetings.h"

namespace fullbore::ptx {
namespace {

constexpr uint32_t kWarp = 32;

// splitmix64.
uint64_t mixed(uint64_t& state) {
  uint64_t x = state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

template <class T>
void shuffle_order(std::vector<T>& order, uint64_t& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[mixed(random) % i]);
}

/// The lanes that take part in what a lane waits for.
uint32_t mask_of(Lane& lane) {
  const Instruction& i = lane.instruction();
  switch (i.meeting) {
    case Meeting::warp_barrier: return static_cast<uint32_t>(lane.slots()[i.slots[0]]);
    case Meeting::shuffle:
    case Meeting::vote:
      return static_cast<uint32_t>(lane.slots()[i.slots[static_cast<size_t>(i.operands - 1)]]);
    default: return ~0U;
  }
}

}  // namespace

Block::Block(const Launch& launch, DeviceMemory& memory, uint64_t index, uint64_t seed)
    : launch_(launch),
      memory_(memory),
      index_(index),
      random_(seed),
      stride_(static_cast<uint32_t>((launch.block.count() + kWarp - 1) / kWarp * kWarp)),
      shared_(static_cast<size_t>(launch.kernel->shared_bytes + launch.dynamic_shared_bytes),
              std::byte{0xff}),
      shared_history_(shared_.size()),
      pending_(shared_.size()),
      unshown_(launch.kernel->has_products ? shared_.size() : 0),
      read_by_products_(launch.kernel->has_products ? shared_.size() / 16 + 1 : 0),
      met_(launch.kernel->code.size()) {
  const auto threads = static_cast<uint32_t>(launch.block.count());
  lanes_.reserve(threads);
  for (uint32_t i = 0; i < threads; ++i) lanes_.emplace_back(*this, i);
}

uint64_t Block::next_random() { return mixed(random_); }

Extent Block::place() const {
  const Extent& grid = launch_.grid;
  return {static_cast<uint32_t>(index_ % grid.x), static_cast<uint32_t>(index_ / grid.x % grid.y),
          static_cast<uint32_t>(index_ / grid.x / grid.y)};
}

int64_t Block::run(int64_t most_instructions) {
  std::vector<uint32_t> order(lanes_.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto is_done = [](const Lane& lane) { return lane.state() == Lane::State::done; };
  while (!std::ranges::all_of(lanes_, is_done)) {
    shuffle_order(order, random_);
    for (const uint32_t lane : order) lanes_[lane].run(most_instructions);
    const bool met = release_warps();
    if (!release_block_barrier() && !met && !std::ranges::all_of(lanes_, is_done)) fail_deadlock();
  }
  if (kernel().has_products) check_products();
  int64_t instructions = 0;
  for (const Lane& lane : lanes_) instructions += lane.instructions();
  return instructions;
}

bool Block::release_warps() {
  bool met = false;
  for (size_t begin = 0; begin < lanes_.size(); begin += kWarp)
    met |= release_warp(
        std::span(lanes_).subspan(begin, std::min<size_t>(kWarp, lanes_.size() - begin)));
  return met;
}

bool Block::release_warp(std::span<Lane> warp) {
  bool met = false;
  for (Lane& leader : warp) {
    if (leader.state() != Lane::State::waits ||
        leader.instruction().meeting == Meeting::block_barrier)
      continue;
    const uint32_t mask = mask_of(leader);
    if ((mask >> leader.number() % kWarp & 1) == 0) leader.fail("it is not in its own mask");
    std::array<Lane*, kWarp> lanes{};
    bool complete = true;
    for (size_t i = 0; i < warp.size() && complete; ++i) {
      if ((mask >> i & 1) == 0) continue;
      Lane& each = warp[i];
      if (each.state() == Lane::State::done)
        leader.fail(fmt::format("it waits for lane {}, which has ended", i));
      complete = each.state() == Lane::State::waits && each.position() == leader.position() &&
                 mask_of(each) == mask;
      lanes[i] = &each;
    }
    if (!complete) continue;
    meet(lanes, leader.instruction());
    const bool orders = leader.instruction().meeting == Meeting::warp_barrier;
    if (orders && mask != ~0U) leader.fail("a barrier of some lanes of a warp is not understood");
    for (Lane* const lane : lanes)
      if (lane != nullptr) lane->go_on(false, orders);
    met = true;
  }
  return met;
}

bool Block::release_block_barrier() {
  bool any = false;
  std::optional<uint64_t> number;
  for (Lane& lane : lanes_) {
    if (lane.state() == Lane::State::done) continue;
    if (lane.state() != Lane::State::waits) return false;
    const Instruction& at = lane.instruction();
    if (at.meeting != Meeting::block_barrier) return false;
    const uint64_t own = at.operands > 0 ? lane.slots()[at.slots[0]] : 0;
    if (number && *number != own) return false;
    number = own;
    if (at.operands > 1 && lane.slots()[at.slots[1]] != launch_.block.count())
      lane.fail("a barrier of some threads of a block is not understood");
    any = true;
  }
  if (!any) return false;
  for (Lane& lane : lanes_)
    if (lane.state() == Lane::State::waits) lane.go_on(true, false);
  return true;
}

// Products are of four warps, which make all of them alike.
void Block::check_products() const {
  constexpr uint32_t kWarpgroup = 4 * kWarp;
  for (const Lane& lane : lanes_)
    if (lane.products_made() != lanes_[lane.number() / kWarpgroup * kWarpgroup].products_made())
      throw Fault(
          fmt::format("{}, thread {} of block {}: it has not made the products of its "
                      "warpgroup",
                      kernel().name, lane.number(), index_));
}

void Block::fail_deadlock() const {
  for (const Lane& lane : lanes_)
    if (lane.state() == Lane::State::waits)
      lane.fail("it waits for ever: the others have not come, or are elsewhere");
  throw Fault("nothing runs");
}

LaunchCounts run(const Launch& launch, DeviceMemory& memory, int64_t most_instructions) {
  const Kernel& kernel = *launch.kernel;
  constexpr uint64_t kMostThreads = 1024;
  const auto fail = [&](const std::string& what) {
    throw Fault(fmt::format("{}: {}", kernel.name, what));
  };
  if (launch.block.count() < 1 || launch.block.count() > kMostThreads)
    fail(fmt::format("{} threads in a block, of {} at most", launch.block.count(), kMostThreads));
  if (launch.grid.count() < 1) fail("no blocks");
  LaunchCounts counts;
  counts.shared_bytes = kernel.shared_bytes + launch.dynamic_shared_bytes;
  if (counts.shared_bytes > kMostSharedBytes)
    fail(fmt::format("{} bytes of shared memory, of {} at most", counts.shared_bytes,
                     kMostSharedBytes));
  if (static_cast<int64_t>(launch.parameters.size()) != kernel.parameter_bytes)
    fail(fmt::format("{} bytes of parameters, {} are declared", launch.parameters.size(),
                     kernel.parameter_bytes));
  memory.forget_accesses();
  uint64_t random = launch.seed;
  std::vector<uint64_t> order(launch.grid.count());
  std::iota(order.begin(), order.end(), uint64_t{0});
  shuffle_order(order, random);
  for (const uint64_t index : order)
    counts.instructions += Block(launch, memory, index, mixed(random)).run(most_instructions);
  return counts;
}

}  // namespace fullbore::ptx
