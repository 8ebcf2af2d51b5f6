#include "tests/support/ptx/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace fullbore::ptx {
namespace {

template <class T>
void shuffle_order(std::vector<T>& order, uint64_t& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[mixed(random) % i]);
}

}  // namespace

uint64_t mixed(uint64_t& state) {
  uint64_t x = state += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

Cluster::Cluster(const Launch& launch, DeviceMemory& memory, uint64_t first_block, uint64_t seed)
    : launch_(launch), memory_(memory), random_(seed) {
  blocks_.reserve(launch.kernel->cluster);
  for (uint32_t rank = 0; rank < launch.kernel->cluster; ++rank)
    blocks_.push_back(std::make_unique<Block>(*this, rank, first_block + rank, mixed(random_)));
}

uint64_t Cluster::draw(uint64_t below) { return mixed(random_) % below; }

int64_t Cluster::run(int64_t most_instructions) {
  std::vector<Lane*> order;
  for (const auto& block : blocks_)
    for (Lane& lane : block->lanes()) order.push_back(&lane);
  // How late copies are complete: when nothing else can happen, or by a coin for each thread that has run, or for all of them.
  const uint64_t laziness = draw(3);
  const auto has_ended = [](const auto& block) { return block->has_ended(); };
  while (!std::ranges::all_of(blocks_, has_ended)) {
    shuffle_order(order, random_);
    bool moved = false;
    for (Lane* const lane : order) {
      moved |= run(*lane, most_instructions);
      if (laziness == 1 && !copies_.empty() && draw(8) == 0) moved |= complete_copy();
    }
    for (const auto& block : blocks_) moved |= block->release();
    moved |= release_cluster_barrier();
    if (laziness == 2 && !copies_.empty() && draw(2) == 0) moved |= complete_copy();
    if (!moved && !std::ranges::all_of(blocks_, has_ended) && !complete_copy()) fail_deadlock();
  }
  int64_t instructions = 0;
  for (const Lane* const lane : order) instructions += lane->instructions();
  return instructions;
}

// Has it come further?
bool Cluster::run(Lane& lane, int64_t most_instructions) {
  using State = Lane::State;
  if (lane.state() == State::done || lane.state() == State::waits) return false;
  const bool slept = lane.state() == State::sleeps;
  const bool can_wake = !slept || lane.can_wake();
  if (!can_wake && !(lane.can_time_out() && draw(16) == 0)) return false;
  if (slept) lane.wake(!can_wake);
  const int position = lane.position();
  lane.run(most_instructions);
  if (lane.state() == State::done && lane.block().has_ended()) lane.block().end();
  return can_wake || lane.state() != State::sleeps || lane.position() != position;
}

bool Cluster::complete_copy() {
  if (copies_.empty()) return false;
  std::swap(copies_[draw(copies_.size())], copies_.back());
  const BoxCopy copy = std::move(copies_.back());
  copies_.pop_back();
  Block& to = *copy.to;
  Mbarrier& mbarrier = *copy.mbarrier;
  const auto bytes = static_cast<int64_t>(copy.bytes->size());
  std::memcpy(to.shared().data() + copy.offset, copy.bytes->data(), copy.bytes->size());
  const auto begin = to.pending().begin() + copy.offset;
  std::fill(begin, begin + bytes, 0U);
  // Who reads it has to know that the phase which it is of is over.
  const uint64_t number = to.mbarrier_number(mbarrier);
  to.shared_history().end_write(
      copy.offset, bytes,
      {.thread = static_cast<uint32_t>(number + 1), .block_phase = mbarrier.phase});
  mbarrier.last_brought = mbarrier.phase + 1;
  if (!mbarrier.add_bytes(bytes))
    throw Fault(fmt::format("{}, block {}: the mbarrier at {:#x} got more bytes than it can count",
                            launch_.kernel->name, to.index(), mbarrier.offset));
  mbarrier.end_phase(number);
  return true;
}

bool Cluster::is_sent_to(const Block& block) const {
  return std::ranges::any_of(copies_, [&](const BoxCopy& copy) { return copy.to == &block; });
}

// Nobody arrives for the n + 2nd time before all have left the n-th.
void Cluster::arrive(Lane& lane, uint32_t n) {
  Arrivals& arrivals = arrivals_[n % 2];
  if (arrivals.n != n) arrivals = {.n = n, .known = {}};
  lane.tell(arrivals.known);
}

// Threads that have ended need not arrive.
bool Cluster::release_cluster_barrier() {
  std::vector<Lane*> waiting;
  uint32_t arrived = ~0U;
  for (const auto& block : blocks_)
    for (Lane& lane : block->lanes()) {
      if (lane.state() == Lane::State::done) continue;
      arrived = std::min(arrived, lane.cluster_arrivals());
      if (lane.state() == Lane::State::waits &&
          lane.instruction().meeting == Meeting::cluster_barrier)
        waiting.push_back(&lane);
    }
  bool met = false;
  for (Lane* const lane : waiting) {
    const uint32_t n = lane->cluster_arrivals();
    if (n > arrived) continue;
    lane->leave_cluster_barrier(arrivals_[n % 2].known);
    met = true;
  }
  return met;
}

void Cluster::fail_deadlock() {
  for (const auto state : {Lane::State::sleeps, Lane::State::waits})
    for (const auto& block : blocks_)
      for (const Lane& lane : block->lanes())
        if (lane.state() == state) lane.fail_waiting();
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
  if (static_cast<int64_t>(launch.block.count()) > kernel.most_threads)
    fail(fmt::format("{} threads in a block of a kernel that promises {} at most",
                     launch.block.count(), kernel.most_threads));
  if (launch.grid.count() < 1) fail("no blocks");
  LaunchCounts counts;
  counts.shared_bytes = kernel.shared_bytes + launch.dynamic_shared_bytes;
  if (counts.shared_bytes > kMostSharedBytes)
    fail(fmt::format("{} bytes of shared memory, of {} at most", counts.shared_bytes,
                     kMostSharedBytes));
  if (static_cast<int64_t>(launch.parameters.size()) != kernel.parameter_bytes)
    fail(fmt::format("{} bytes of parameters, {} are declared", launch.parameters.size(),
                     kernel.parameter_bytes));
  if (launch.grid.x % kernel.cluster != 0)
    fail(fmt::format("a grid of {} blocks beside one another, and clusters of {}", launch.grid.x,
                     kernel.cluster));
  memory.forget_accesses();
  uint64_t random = launch.seed;
  std::vector<uint64_t> order(launch.grid.count() / kernel.cluster);
  std::iota(order.begin(), order.end(), uint64_t{0});
  shuffle_order(order, random);
  for (const uint64_t index : order)
    counts.instructions +=
        Cluster(launch, memory, index * kernel.cluster, mixed(random)).run(most_instructions);
  return counts;
}

}  // namespace fullbore::ptx
