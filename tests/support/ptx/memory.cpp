#include "tests/support/ptx/memory.h"

#include <algorithm>

namespace fullbore::ptx {

namespace {

bool conflicts(const Access& earlier, const Access& now, const Order& order) {
  if (earlier.thread == 0 || earlier.thread == now.thread) return false;
  if (earlier.is_atomic != 0 && now.is_atomic != 0) return false;
  const uint32_t before = earlier.thread - 1, after = now.thread - 1;
  if (order.clock != nullptr) return !order.clock->knows(before, earlier.block_phase);
  const uint32_t block_stride = order.block_stride;
  if (before / block_stride != after / block_stride) return true;
  if (earlier.block_phase < now.block_phase) return false;
  constexpr uint32_t kWarp = 32;
  return before / kWarp != after / kWarp || earlier.warp_phase >= now.warp_phase;
}

}  // namespace

AccessHistory::Byte& AccessHistory::at(size_t offset) {
  std::unique_ptr<Page>& page = pages_[offset / kPageBytes];
  if (!page) {
    page = std::make_unique<Page>();
    touched_.push_back(offset / kPageBytes);
  }
  return (*page)[offset % kPageBytes];
}

void AccessHistory::forget() {
  for (const size_t page : touched_) pages_[page].reset();
  touched_.clear();
}

std::optional<Access> AccessHistory::read(int64_t offset, int64_t bytes, const Access& now,
                                          const Order& order) {
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i) {
    Byte& byte = at(i);
    if (conflicts(byte.writer, now, order)) return byte.writer;
    if (byte.readers[0].thread != now.thread) byte.readers[1] = byte.readers[0];
    byte.readers[0] = now;
  }
  return std::nullopt;
}

std::optional<Access> AccessHistory::write(int64_t offset, int64_t bytes, const Access& now,
                                           const Order& order) {
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i) {
    Byte& byte = at(i);
    for (const Access* each : {&byte.writer, &byte.readers[0], &byte.readers[1]})
      if (conflicts(*each, now, order)) return *each;
    byte = {.writer = now, .readers = {}};
  }
  return std::nullopt;
}

void AccessHistory::end_write(int64_t offset, int64_t bytes, const Access& now) {
  for (auto i = static_cast<size_t>(offset); i < static_cast<size_t>(offset + bytes); ++i)
    at(i) = {.writer = now, .readers = {}};
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
  for (auto& [address, each] : allocations_)
    if (each.history) each.history->forget();
}

}  // namespace fullbore::ptx
