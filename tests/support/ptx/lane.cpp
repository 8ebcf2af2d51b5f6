#include <fmt/format.h>

#include <cstring>

#include "tests/support/ptx/cluster.h"

namespace fullbore::ptx {

Lane::Lane(Block& block, uint32_t number)
    : block_(block),
      number_(number),
      slots_(static_cast<size_t>(block.kernel().slots)),
      local_(static_cast<size_t>(block.kernel().local_bytes), std::byte{0xff}) {
  for (uint64_t& each : slots_) each = block.noise();
  for (const Constant& each : block.kernel().constants)
    slots_[static_cast<size_t>(each.slot)] = each.value;
  const Extent &size = block.launch().block, &grid = block.launch().grid, place = block.place();
  const uint32_t x = number % size.x, y = number / size.x % size.y, z = number / size.x / size.y;
  const uint32_t lane = number % 32;
  const uint32_t values[] = {
      x,       y,      z,      size.x, size.y, size.z,      place.x,          place.y,
      place.z, grid.x, grid.y, grid.z, lane,   number / 32, (1U << lane) - 1, block.rank()};
  for (const SpecialSlot& each : block.kernel().specials)
    slots_[static_cast<size_t>(each.slot)] = values[static_cast<size_t>(each.special)];
  if (!block.kernel().has_clocks) return;
  const uint64_t first = (block.index() - block.rank()) * block.stride();
  clock_ = Clock(first, size_t{block.kernel().cluster} * block.stride());
  clock_.of(block.first_thread() + number) = 1;
}

const Instruction& Lane::instruction() const {
  return block_.kernel().code[static_cast<size_t>(position_)];
}

void Lane::run(int64_t most_instructions) {
  const std::vector<Instruction>& code = block_.kernel().code;
  while (state_ == State::runs) {
    if (static_cast<size_t>(position_) >= code.size()) {
      state_ = State::done;
      return;
    }
    const Instruction& next = code[static_cast<size_t>(position_)];
    if (++instructions_ > most_instructions) fail("it made too many instructions");
    if (next.guard >= 0 &&
        ((slots_[static_cast<size_t>(next.guard)] & 1) != 0) == next.guard_negated) {
      ++position_;
    } else if (next.execute != nullptr) {
      is_again_ = false;
      next.execute(*this, next);
      if (!is_again_) ++position_;
    } else if (next.meeting != Meeting::none) {
      state_ = State::waits;
    } else if (next.target >= 0) {
      position_ = next.target;
    } else {
      state_ = State::done;
    }
  }
}

void Lane::go_on(bool behind_block, bool behind_warp) {
  state_ = State::runs;
  ++position_;
  if (behind_block) ++block_phase_;
  if (behind_warp) ++warp_phase_;
}

Access Lane::access(bool is_atomic) const {
  Access made;
  made.thread = static_cast<uint32_t>(block_.first_thread() + number_ + 1);
  made.block_phase = clock_.is_kept() ? step_ : block_phase_;
  made.warp_phase = warp_phase_ & 0x7fffffffU;
  made.is_atomic = is_atomic ? 1 : 0;
  return made;
}

Order Lane::order() const { return {block_.stride(), clock_.is_kept() ? &clock_ : nullptr}; }

bool Lane::knows(const Access& earlier) const {
  return earlier.thread - 1 == block_.first_thread() + number_ ||
         clock_.knows(earlier.thread - 1, earlier.block_phase);
}

void Lane::tell(Clock& others) {
  others.join(clock_);
  clock_.of(block_.first_thread() + number_) = ++step_ + 1;
}

void Lane::learn(const Clock& from) { clock_.join(from); }

std::byte* Lane::reach(Space space, uint64_t address, int64_t bytes, int64_t alignment, bool write,
                       bool is_atomic, const Access* other) {
  const uint64_t told = address;
  if (space == Space::generic)
    for (const auto& [window, of] : {std::pair{kSharedWindow, Space::shared},
                                     {kLocalWindow, Space::local},
                                     {kParameterWindow, Space::parameter}})
      if (address >= window && address < window + kWindowBytes) {
        space = of;
        address -= window;
        break;
      }
  if (address % static_cast<uint64_t>(alignment) != 0)
    fail(fmt::format("address {:#x} is no multiple of {}", told, alignment));
  const auto within = [&](const auto& memory, const char* name) {
    if (address > memory.size() || static_cast<uint64_t>(bytes) > memory.size() - address)
      fail(fmt::format("{} bytes at {:#x} are not within the {} bytes of {}", bytes, told,
                       memory.size(), name));
  };
  const auto note = [&](AccessHistory& history, int64_t offset) {
    const Access now = other != nullptr ? *other : access(is_atomic);
    if (const auto earlier = write ? history.write(offset, bytes, now, order())
                                   : history.read(offset, bytes, now, order()))
      fail_race(*earlier, told, write);
  };
  const auto offset = static_cast<int64_t>(address);
  switch (space) {
    case Space::parameter:
      within(block_.launch().parameters, "parameters");
      if (write) fail("a parameter is written");
      return const_cast<std::byte*>(block_.launch().parameters.data()) + offset;
    case Space::local: within(local_, "local memory"); return local_.data() + offset;
    case Space::shared: {
      within(block_.shared(), "shared memory");
      for (int64_t i = offset; i < offset + bytes; ++i)
        if (const uint32_t owner = block_.pending()[static_cast<size_t>(i)]; owner != 0)
          fail(owner == Block::kBox
                   ? fmt::format("shared memory at {:#x} awaits a box of a tensor", told)
                   : fmt::format("shared memory at {:#x} awaits what cp.async of thread {} brings",
                                 told, owner - 1));
      if (block_.mbarriers().overlap(offset, bytes))
        fail(fmt::format("shared memory at {:#x} is an mbarrier", told));
      if (write && clock_.is_kept()) {
        for (int64_t i = offset; i < offset + bytes; ++i)
          block_.unshown()[static_cast<size_t>(i)] = number_ + 1;
        unshown_.emplace_back(offset, bytes);
      }
      note(block_.shared_history(), offset);
      return block_.shared().data() + offset;
    }
    default: break;
  }
  DeviceMemory::Allocation*& met = block_.met_by(position_);
  if (met == nullptr || address < met->address || address - met->address >= met->bytes.size())
    met = block_.memory().find(address);
  if (met == nullptr || static_cast<uint64_t>(bytes) > met->bytes.size() - (address - met->address))
    fail(fmt::format("{} bytes at {:#x} are in no allocation", bytes, told));
  const auto in_allocation = static_cast<int64_t>(address - met->address);
  if (!met->history) met->history = std::make_unique<AccessHistory>(met->bytes.size());
  note(*met->history, in_allocation);
  return met->bytes.data() + in_allocation;
}

void Lane::copy_later(uint64_t shared, uint64_t global, int64_t bytes, int64_t read) {
  PendingCopy copy{static_cast<int64_t>(shared),
                   std::vector<std::byte>(static_cast<size_t>(bytes))};
  if (shared >= kSharedWindow) copy.offset = static_cast<int64_t>(shared - kSharedWindow);
  if (read > 0)
    std::memcpy(copy.bytes.data(), reach(Space::global, global, read, bytes, false),
                static_cast<size_t>(read));
  // From now on until it is waited for it may be written at any time.
  reach(Space::shared, static_cast<uint64_t>(copy.offset), bytes, bytes, true);
  for (int64_t i = 0; i < bytes; ++i)
    block_.pending()[static_cast<size_t>(copy.offset + i)] = number_ + 1;
  copies_.back().push_back(std::move(copy));
}

void Lane::wait_for_copies(int64_t groups_left) {
  while (static_cast<int64_t>(copies_.size()) - 1 > groups_left) {
    for (const PendingCopy& copy : copies_.front()) {
      const auto bytes = static_cast<int64_t>(copy.bytes.size());
      for (int64_t i = 0; i < bytes; ++i)
        block_.pending()[static_cast<size_t>(copy.offset + i)] = 0;
      std::memcpy(reach(Space::shared, static_cast<uint64_t>(copy.offset), bytes, 1, true),
                  copy.bytes.data(), copy.bytes.size());
    }
    copies_.erase(copies_.begin());
  }
}

void Lane::set_condition(uint64_t condition, uint32_t value) const {
  const auto& set = block_.launch().set_condition;
  if (!set || !set(condition, value))
    fail(
        fmt::format("the graph that it is in, if it is in one, has no condition {:#x}", condition));
}

void Lane::fail(const std::string& what) const {
  const Kernel& kernel = block_.kernel();
  const Instruction& at = kernel.code[static_cast<size_t>(position_)];
  const std::string& line = kernel.text[static_cast<size_t>(at.line - 1)];
  const size_t begin = line.find_first_not_of(" \t");
  throw Fault(fmt::format("{}, thread {} of block {}: {} (line {}: {})", kernel.name, number_,
                          block_.index(), what, at.line,
                          begin == std::string::npos ? line : line.substr(begin)));
}

void Lane::fail_waiting() const {
  if (state_ == State::waits || awaited_.mbarrier == nullptr)
    fail("it waits for ever: the others have not come, or are elsewhere");
  const Mbarrier& of = *awaited_.mbarrier;
  fail(fmt::format(
      "it waits for ever: phase {} of the mbarrier at {:#x} lacks {} arrivals and {} bytes",
      of.phase, of.offset, of.pending, of.bytes));
}

void Lane::fail_race(const Access& earlier, uint64_t address, bool write) const {
  fail(fmt::format("{} {:#x}, which {} {} with nothing in between", write ? "writes" : "reads",
                   address, block_.name_of(earlier),
                   write ? "has read or written" : "has written"));
}

}  // namespace fullbore::ptx
