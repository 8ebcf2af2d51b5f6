#include "tests/support/ptx/memory.h"

#include <algorithm>

namespace fullbore::ptx {

bool AccessHistory::conflicts(const Access& earlier, const Access& now) const {
  if (earlier.thread == 0 || earlier.thread == now.thread) return false;
  if (earlier.is_atomic != 0 && now.is_atomic != 0) return false;
  const uint32_t before = earlier.thread - 1, after = now.thread - 1;
  if (before / block_stride_ != after / block_stride_) return true;
  if (earlier.block_phase < now.block_phase) return false;
  constexpr uint32_t kWarp = 32;
  return before / kWarp != after / kWarp || earlier.warp_phase >= now.warp_phase;
}

std::optional<Access> AccessHistory::read(int64_t offset, int64_t bytes, const Access& now) {
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i) {
    const Access& writer = writers_[i];
    if (conflicts(writer, now)) return writer;
    Access* const known = &readers_[2 * i];
    if (known[0].thread != now.thread) known[1] = known[0];
    known[0] = now;
  }
  return std::nullopt;
}

std::optional<Access> AccessHistory::write(int64_t offset, int64_t bytes, const Access& now) {
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i) {
    for (const Access* each : {&writers_[i], &readers_[2 * i], &readers_[2 * i + 1]})
      if (conflicts(*each, now)) return *each;
    writers_[i] = now;
    readers_[2 * i] = readers_[2 * i + 1] = {};
  }
  return std::nullopt;
}

uint64_t DeviceMemory::allocate(int64_t bytes) {
  constexpr uint64_t kAlignment = 512, kGap = 1 << 20;
  const uint64_t address = next_;
  Allocation& made = allocations_[address];
  made.address = address;
  made.bytes.assign(static_cast<size_t>(bytes),
                    std::byte{0xff});  // NaN in every format, -1 as an integer
  next_ += (static_cast<uint64_t>(bytes) + kGap + kAlignment - 1) / kAlignment * kAlignment;
  return address;
}

DeviceMemory::Allocation* DeviceMemory::find(uint64_t address) {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return nullptr;
  Allocation& found = std::prev(next)->second;
  return address - found.address < found.bytes.size() ? &found : nullptr;
}

std::span<std::byte> DeviceMemory::at(uint64_t address, int64_t bytes) {
  Allocation* const found = find(address);
  if (found == nullptr || bytes < 0) return {};
  const uint64_t offset = address - found->address;
  if (static_cast<uint64_t>(bytes) > found->bytes.size() - offset) return {};
  return std::span(found->bytes).subspan(offset, static_cast<size_t>(bytes));
}

void DeviceMemory::forget_accesses() {
  for (auto& [address, each] : allocations_) each.history.reset();
}

}  // namespace fullbore::ptx
