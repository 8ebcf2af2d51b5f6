// The fake driver's calls about memory, and copies, which happen in their stream's order and not before somebody waits.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"

using fullbore::cuda::DevicePointer;
using fullbore::cuda::StreamHandle;
using fullbore::fake_cuda::Card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::Stream;
namespace cuda = fullbore::cuda;

namespace {

Stream& stream_of(StreamHandle handle) { return *reinterpret_cast<Stream*>(handle); }

/// The bytes of the card there, when an operation comes to them: freed in between is a fault.
std::byte* bytes_at(Card& card, DevicePointer pointer, size_t bytes) {
  const auto found = card.memory.at(pointer, static_cast<int64_t>(bytes));
  if (found.empty())
    machine().fail(cuda::kIllegalAddress,
                   fmt::format("{} bytes at {:#x} are in no allocation", bytes, pointer));
  return found.empty() ? nullptr : found.data();
}

/// Nodes that know of the memory, of graphs that may yet be launched. Bodies of conditional nodes are not looked at.
int64_t nodes_that_know(DevicePointer pointer, int64_t bytes) {
  int64_t nodes = 0;
  for (const auto* const exec : machine().executables)
    for (const auto& node : exec->nodes->nodes)
      nodes += std::ranges::any_of(node.memory, [&](uint64_t known) {
        return known >= pointer && known < pointer + static_cast<uint64_t>(bytes);
      });
  return nodes;
}

bool is_there(Card& card, DevicePointer pointer, size_t bytes) {
  return !card.memory.at(pointer, static_cast<int64_t>(bytes)).empty();
}

template <class Word>
int fill(const char* name, DevicePointer to, Word value, size_t count, StreamHandle stream) {
  const Entry entry(name);
  if (entry.code() != 0 || count == 0) return entry.code();
  Card& card = entry.card();
  if (!is_there(card, to, count * sizeof(Word)) || to % sizeof(Word) != 0)
    return cuda::kInvalidValue;
  machine().enqueue(stream_of(stream), [=, &card] {
    std::byte* const bytes = bytes_at(card, to, count * sizeof(Word));
    for (size_t i = 0; bytes != nullptr && i < count; ++i)
      std::memcpy(bytes + i * sizeof(Word), &value, sizeof(Word));
  });
  return 0;
}

}  // namespace

extern "C" {

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Entry entry("cuMemGetInfo_v2");
  if (entry.code() != 0) return entry.code();
  *total = static_cast<size_t>(machine().told.memory_bytes);
  *free = *total - static_cast<size_t>(entry.card().allocated_bytes);
  return 0;
}

int cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  const Entry entry("cuMemAlloc_v2");
  if (entry.code() != 0) return entry.code();
  if (bytes == 0) return cuda::kInvalidValue;
  Card& card = entry.card();
  FakeCuda& told = machine().told;
  if (static_cast<int64_t>(bytes) > told.memory_bytes - card.allocated_bytes)
    return cuda::kOutOfMemory;
  *pointer = card.memory.allocate(static_cast<int64_t>(bytes));
  card.allocations[*pointer] = static_cast<int64_t>(bytes);
  card.allocated_bytes += static_cast<int64_t>(bytes);
  told.allocated_bytes += static_cast<int64_t>(bytes);
  ++told.allocations;
  return 0;
}

// The driver waits for all that the card does before it takes memory back.
int cuMemFree_v2(DevicePointer pointer) {
  const Entry entry("cuMemFree_v2");
  if (entry.code() != 0) return entry.code();
  Card& card = entry.card();
  const auto found = card.allocations.find(pointer);
  if (found == card.allocations.end()) return cuda::kInvalidValue;
  machine().complete_all();
  if (const int64_t nodes = nodes_that_know(pointer, found->second); nodes > 0)
    machine().fail(
        cuda::kIllegalAddress,
        fmt::format("{} nodes of executable graphs copy or fill memory that is given back", nodes));
  card.allocated_bytes -= found->second;
  machine().told.allocated_bytes -= found->second;
  --machine().told.allocations;
  card.memory.free(pointer);
  card.allocations.erase(found);
  return 0;
}

int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Entry entry("cuMemHostAlloc");
  if (entry.code() != 0) return entry.code();
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr) return cuda::kOutOfMemory;
  std::memset(*pointer, 0xff, bytes);
  machine().pinned[*pointer] = static_cast<int64_t>(bytes);
  ++machine().told.pinned;
  return 0;
}

int cuMemFreeHost(void* pointer) {
  const Entry entry("cuMemFreeHost");
  if (entry.code() != 0) return entry.code();
  if (machine().pinned.erase(pointer) == 0) return cuda::kInvalidValue;
  std::free(pointer);
  --machine().told.pinned;
  return 0;
}

// What is not pinned the driver copies aside before it returns; what is pinned it looks at when it comes to it.
int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) {
  const Entry entry("cuMemcpyHtoDAsync_v2");
  if (entry.code() != 0 || bytes == 0) return entry.code();
  Card& card = entry.card();
  if (!is_there(card, to, bytes)) return cuda::kInvalidValue;
  std::vector<std::byte> aside;
  const bool pinned = machine().is_pinned(from, bytes);
  if (!pinned)
    aside.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
  machine().enqueue(stream_of(stream), [=, &card, aside = std::move(aside)] {
    if (pinned && !machine().is_pinned(from, bytes))
      return machine().fail(cuda::kIllegalAddress, "pinned memory was freed before its copy");
    std::byte* const there = bytes_at(card, to, bytes);
    if (there != nullptr) std::memcpy(there, pinned ? from : aside.data(), bytes);
  });
  return 0;
}

int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, StreamHandle stream) {
  const Entry entry("cuMemcpyDtoHAsync_v2");
  if (entry.code() != 0 || bytes == 0) return entry.code();
  Card& card = entry.card();
  if (!is_there(card, from, bytes)) return cuda::kInvalidValue;
  const bool pinned = machine().is_pinned(to, bytes);
  const auto copy = machine().enqueue(stream_of(stream), [=, &card] {
    if (pinned && !machine().is_pinned(to, bytes))
      return machine().fail(cuda::kIllegalAddress, "pinned memory was freed before its copy");
    const std::byte* const there = bytes_at(card, from, bytes);
    if (there != nullptr) std::memcpy(to, there, bytes);
  });
  if (!pinned) machine().complete(copy);
  return pinned ? 0 : machine().lost;
}

int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, StreamHandle stream) {
  const Entry entry("cuMemcpyDtoDAsync_v2");
  if (entry.code() != 0 || bytes == 0) return entry.code();
  Card& card = entry.card();
  if (!is_there(card, from, bytes) || !is_there(card, to, bytes)) return cuda::kInvalidValue;
  machine().enqueue(stream_of(stream), [=, &card] {
    const std::byte* const source = bytes_at(card, from, bytes);
    std::byte* const target = bytes_at(card, to, bytes);
    if (source != nullptr && target != nullptr) std::memmove(target, source, bytes);
  });
  return 0;
}

int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, StreamHandle stream) {
  return fill("cuMemsetD8Async", to, value, count, stream);
}

int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, StreamHandle stream) {
  return fill("cuMemsetD32Async", to, value, count, stream);
}

}  // extern "C"
