#include "tests/support/ptx/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/support/ptx/cluster.h"
#include "tests/support/ptx/meetings.h"

namespace fullbore::ptx {
namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kWarpgroup = 4 * kWarp;
constexpr uint32_t kMostWarpgroups = 8;

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

bool is_of_warp(Meeting meeting) {
  return meeting != Meeting::block_barrier && meeting != Meeting::cluster_barrier;
}

uint32_t whole_warps(const Launch& launch) {
  return static_cast<uint32_t>((launch.block.count() + kWarp - 1) / kWarp * kWarp);
}

}  // namespace

Block::Block(Cluster& cluster, uint32_t rank, uint64_t index, uint64_t seed)
    : cluster_(cluster),
      rank_(rank),
      index_(index),
      random_(seed),
      threads_(whole_warps(cluster.launch())),
      stride_(threads_ + (kernel().has_clocks ? kMostWarpgroups + Mbarriers::kMost : 0)),
      shared_(static_cast<size_t>(kernel().shared_bytes + launch().dynamic_shared_bytes),
              std::byte{0xff}),
      shared_history_(shared_.size()),
      pending_(shared_.size()),
      unshown_(kernel().has_clocks ? shared_.size() : 0),
      mbarriers_(shared_.size()),
      met_(kernel().code.size()) {
  static_assert((kMostWarpgroups + Mbarriers::kMost) % kWarp == 0);
  const auto threads = static_cast<uint32_t>(launch().block.count());
  lanes_.reserve(threads);
  for (uint32_t i = 0; i < threads; ++i) lanes_.emplace_back(*this, i);
}

const Launch& Block::launch() const { return cluster_.launch(); }
DeviceMemory& Block::memory() { return cluster_.memory(); }
uint64_t Block::noise() { return mixed(random_); }

Extent Block::place() const {
  const Extent& grid = launch().grid;
  return {static_cast<uint32_t>(index_ % grid.x), static_cast<uint32_t>(index_ / grid.x % grid.y),
          static_cast<uint32_t>(index_ / grid.x / grid.y)};
}

uint64_t Block::warpgroup_number(uint32_t thread) const {
  return first_thread() + threads_ + thread / kWarpgroup;
}
uint64_t Block::mbarrier_number(const Mbarrier& of) const {
  return first_thread() + threads_ + kMostWarpgroups + of.number;
}

std::string Block::name_of(const Access& access) const {
  const uint64_t block = (access.thread - 1) / stride_, number = (access.thread - 1) % stride_;
  return fmt::format("{} of block {}",
                     number < threads_                     ? fmt::format("thread {}", number)
                     : number < threads_ + kMostWarpgroups ? "a product"
                                                           : "a box for an mbarrier",
                     block);
}

bool Block::has_ended() const {
  return std::ranges::all_of(lanes_,
                             [](const Lane& lane) { return lane.state() == Lane::State::done; });
}

bool Block::release() {
  bool met = false;
  for (size_t begin = 0; begin < lanes_.size(); begin += kWarp)
    met |= release_warp(
        std::span(lanes_).subspan(begin, std::min<size_t>(kWarp, lanes_.size() - begin)));
  return release_block_barrier() || met;
}

// What each has done comes before what any of them does from now on.
void Block::order(std::span<Lane> lanes) {
  if (!kernel().has_clocks) return;
  Clock all;
  for (Lane& lane : lanes) lane.tell(all);
  for (Lane& lane : lanes) lane.learn(all);
}

bool Block::release_warp(std::span<Lane> warp) {
  bool met = false;
  for (Lane& leader : warp) {
    if (leader.state() != Lane::State::waits || !is_of_warp(leader.instruction().meeting)) continue;
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
    if (orders) order(warp);
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
    if (at.operands > 1 && lane.slots()[at.slots[1]] != launch().block.count())
      lane.fail("a barrier of some threads of a block is not understood");
    any = true;
  }
  if (!any) return false;
  order(lanes_);
  for (Lane& lane : lanes_)
    if (lane.state() == Lane::State::waits) lane.go_on(true, false);
  return true;
}

bool Block::have_committed(uint32_t thread, uint32_t groups) const {
  const size_t first = thread / kWarpgroup * kWarpgroup;
  for (size_t warp = first; warp < std::min<size_t>(first + kWarpgroup, lanes_.size());
       warp += kWarp)
    if (lanes_[warp].groups_committed() < groups) return false;
  return true;
}

// Products are of four warps, which make all of them alike.
void Block::check_products() const {
  for (const Lane& lane : lanes_)
    if (lane.products_made() != lanes_[lane.number() / kWarpgroup * kWarpgroup].products_made())
      fail(fmt::format("thread {} has not made the products of its warpgroup", lane.number()));
}

void Block::end() const {
  if (!kernel().has_clocks) return;
  check_products();
  if (cluster_.is_sent_to(*this)) fail("it ends with a box of a tensor on its way to it");
  Clock known;
  for (const Lane& lane : lanes_) known.join(lane.clock());
  for (const auto& [offset, each] : mbarriers_.all()) {
    if (each.last_brought > 0 && !known.knows(mbarrier_number(each), each.last_brought - 1))
      fail(fmt::format("it ends, and has not waited for what was brought for its mbarrier at {:#x}",
                       offset));
    for (const auto& [thread, step] : each.sent)
      if (!known.knows(thread, step))
        fail(fmt::format(
            "it ends, and cannot know whether thread {} of block {} has arrived at its mbarrier at "
            "{:#x}",
            thread % stride_, thread / stride_, offset));
  }
}

void Block::fail(const std::string& what) const {
  throw Fault(fmt::format("{}, block {}: {}", kernel().name, index_, what));
}

}  // namespace fullbore::ptx
