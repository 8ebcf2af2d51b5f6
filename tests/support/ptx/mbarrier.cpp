// What threads do with mbarriers, their own block's and others', and with the barrier of their cluster.
#include "tests/support/ptx/mbarrier.h"

#include <fmt/format.h>

#include "tests/support/ptx/cluster.h"
#include "tests/support/ptx/operands.h"

namespace fullbore::ptx {

bool Mbarrier::add_bytes(int64_t come) {
  bytes -= come;
  return bytes >= -kMost && bytes <= kMost;
}

bool Mbarrier::arrive(uint32_t arrivals) {
  if (arrivals > pending) return false;
  pending -= arrivals;
  return true;
}

void Mbarrier::end_phase(uint64_t number_in_grid) {
  if (pending > 0 || bytes != 0) return;
  over.join(arrived);
  over.of(number_in_grid) = ++phase;
  pending = count;
}

Mbarrier* Mbarriers::find(int64_t offset) {
  const auto found = all_.find(offset);
  return found == all_.end() ? nullptr : &found->second;
}

Mbarrier* Mbarriers::add(int64_t offset) {
  if (all_.size() == kMost) return nullptr;
  Mbarrier& made = all_[offset];
  made.offset = offset;
  made.number = static_cast<uint32_t>(all_.size() - 1);
  is_one_[static_cast<size_t>(offset / 8)] = true;
  return &made;
}

bool Mbarriers::overlap(int64_t offset, int64_t bytes) const {
  if (all_.empty()) return false;
  for (int64_t i = offset / 8; i <= (offset + bytes - 1) / 8; ++i)
    if (static_cast<size_t>(i) < is_one_.size() && is_one_[static_cast<size_t>(i)]) return true;
  return false;
}

Lane::Place Lane::place_of(uint64_t address) const {
  const uint64_t rank = address / kRankBytes;
  if (rank == 0) return {&block_, static_cast<int64_t>(address)};
  if (rank > block_.cluster().size())
    fail(fmt::format("{:#x} is of no block of the cluster", address));
  Block& there = block_.cluster().block(static_cast<uint32_t>(rank - 1));
  if (there.has_ended())
    fail(fmt::format("{:#x} is of block {}, which has ended", address, there.index()));
  return {&there, static_cast<int64_t>(address % kRankBytes)};
}

uint64_t Lane::address_in(uint64_t address, uint32_t rank) const {
  if (rank >= block_.cluster().size()) fail(fmt::format("the cluster has no block {}", rank));
  return address % kRankBytes + (rank + uint64_t{1}) * kRankBytes;
}

Mbarrier& Lane::mbarrier_at(const Place& place, uint64_t told) const {
  Mbarrier* const found = place.block->mbarriers().find(place.offset);
  if (found == nullptr) fail(fmt::format("there is no mbarrier at {:#x}", told));
  if (!knows(found->made))
    fail(fmt::format("the mbarrier at {:#x} was made by {} with nothing in between", told,
                     block_.name_of(found->made)));
  return *found;
}

void Lane::init_mbarrier(uint64_t address, uint32_t count) {
  reach(Space::shared, address, 8, 8, true);
  if (count < 1 || count > Mbarrier::kMost)
    fail(fmt::format("an mbarrier of {} arrivals, of 1 to {}", count, Mbarrier::kMost));
  Mbarrier* const made = block_.mbarriers().add(static_cast<int64_t>(address));
  if (made == nullptr)
    fail(fmt::format("more than {} mbarriers of a block are not understood", Mbarriers::kMost));
  made->count = made->pending = count;
  made->made = access(false);
  // Who waits for a phase has at least seen it made.
  made->over = clock_;
}

void Lane::arrive(uint64_t address, uint32_t count) {
  const Place place = place_of(address);
  Mbarrier& at = mbarrier_at(place, address);
  if (place.block != &block_) at.sent[block_.first_thread() + number_] = step_;
  if (!at.arrive(count))
    fail(fmt::format("{} arrivals at the mbarrier at {:#x}, whose phase {} lacks {}", count,
                     address, at.phase, at.pending));
  tell(at.arrived);
  at.end_phase(place.block->mbarrier_number(at));
}

void Lane::expect(uint64_t address, uint32_t bytes) {
  if (!mbarrier_at(place_of(address), address).add_bytes(-int64_t{bytes}))
    fail(fmt::format("the mbarrier at {:#x} is to expect more than {} bytes", address,
                     Mbarrier::kMost));
}

std::optional<bool> Lane::try_wait(uint64_t address, uint32_t parity) {
  const Place place = place_of(address);
  if (place.block != &block_ || address >= kRankBytes)
    fail("a wait for an mbarrier of another block");
  if (parity > 1) fail(fmt::format("{} is no parity", parity));
  const Mbarrier& of = mbarrier_at(place, address);
  awaited_ = {.mbarrier = &of, .parity = parity};
  const bool is_over = can_wake();
  if (is_over) learn(of.over);
  if (!is_over && !timed_out_) return sleep(awaited_), std::nullopt;
  timed_out_ = false;
  return is_over;
}

void Lane::sleep(const Awaited& awaited) {
  awaited_ = awaited;
  state_ = State::sleeps;
  is_again_ = true;
}

bool Lane::can_wake() const {
  if (awaited_.mbarrier != nullptr) return awaited_.mbarrier->phase % 2 != awaited_.parity;
  return block_.have_committed(number_, awaited_.groups);
}

void Lane::wake(bool is_timeout) {
  state_ = State::runs;
  timed_out_ = is_timeout;
}

void Lane::arrive_at_cluster() {
  if (cluster_arrivals_ != cluster_waits_)
    fail("it arrives at the barrier of its cluster, and has not waited since the last time");
  block_.cluster().arrive(*this, ++cluster_arrivals_);
}

void Lane::leave_cluster_barrier(const Clock& others) {
  if (cluster_arrivals_ == cluster_waits_)
    fail("it waits at the barrier of its cluster, and has not arrived");
  ++cluster_waits_;
  learn(others);
  go_on(false, false);
}

namespace {

// Addresses of shared memory are 32 bits wide.
uint32_t word(Lane& lane, const Instruction& i, int operand) {
  return value<uint32_t>(lane, i, operand);
}
uint64_t address(Lane& lane, const Instruction& i, int operand) {
  return word(lane, i, operand) + static_cast<uint64_t>(i.offset);
}

void init(Lane& lane, const Instruction& i) {
  lane.init_mbarrier(address(lane, i, 0), word(lane, i, 1));
}
// The state that it returns is no more than the phase.
void arrive(Lane& lane, const Instruction& i) {
  lane.arrive(address(lane, i, 1), i.operands > 2 ? word(lane, i, 2) : 1);
}
void arrive_and_expect(Lane& lane, const Instruction& i) {
  lane.expect(address(lane, i, 1), word(lane, i, 2));
  lane.arrive(address(lane, i, 1), 1);
}
void try_wait(Lane& lane, const Instruction& i) {
  if (const auto is_over = lane.try_wait(address(lane, i, 1), word(lane, i, 2)))
    give(lane, i, 0, uint64_t{*is_over});
}
void map_address(Lane& lane, const Instruction& i) {
  give(lane, i, 0, static_cast<uint32_t>(lane.address_in(address(lane, i, 1), word(lane, i, 2))));
}
void show_mbarriers(Lane& lane, const Instruction&) { lane.show_to_others(true); }
void arrive_at_cluster(Lane& lane, const Instruction&) { lane.arrive_at_cluster(); }
void set_registers(Lane& lane, const Instruction& i) {
  const uint32_t count = word(lane, i, 0);
  if (count < 24 || count > 256 || count % 8 != 0)
    lane.fail(fmt::format("{} registers are no multiple of 8 from 24 to 256", count));
}

bool decode_mbarrier(Words words, Instruction& made) {
  // Scopes and what they order are those of the fewest: every arrival orders, and every wait.
  if (has(words, "relaxed") || has(words, "noComplete") || words.back() != "b64") return false;
  if (words[1] == "init") return made.execute = init, made.operands == 2;
  if (words[1] == "arrive" && has(words, "expect_tx"))
    return made.execute = arrive_and_expect, made.operands == 3;
  if (words[1] == "arrive") return made.execute = arrive, made.operands == 2 || made.operands == 3;
  if (words[1] == "try_wait" && words[2] == "parity")
    return made.execute = try_wait, made.operands == 3 || made.operands == 4;
  return false;
}

}  // namespace

bool decode_cluster(Words words, Instruction& made) {
  if (words.size() < 2) return false;
  if (words[0] == "mbarrier") return words.size() > 2 && decode_mbarrier(words, made);
  if (words[0] == "mapa")
    return made.execute = map_address,
           words[1] == "shared::cluster" && words.back() == "u32" && made.operands == 3;
  if (words[0] == "fence" && words[1] == "mbarrier_init")
    return made.execute = show_mbarriers, has(words, "release") && words.back() == "cluster";
  if (words[0] == "setmaxnreg")
    return made.execute = set_registers, (words[1] == "inc" || words[1] == "dec") &&
                                             has(words, "sync") && has(words, "aligned") &&
                                             made.operands == 1;
  if (words[0] != "barrier" || words[1] != "cluster" || words.size() < 3 || has(words, "relaxed"))
    return false;
  if (words[2] == "wait") return made.meeting = Meeting::cluster_barrier, made.operands == 0;
  if (words[2] != "arrive") return false;
  if (has(words, "aligned"))
    made.meeting = Meeting::cluster_arrival;
  else
    made.execute = arrive_at_cluster;
  return made.operands == 0;
}

}  // namespace fullbore::ptx
