// The fake driver's calls about cards and contexts.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "fullbore/device/cuda/driver/handles.h"
#include "tests/fake_cuda/entry.h"
#include "tests/fake_cuda/multiprocessor.h"

using fullbore::cuda::ContextHandle;
using fullbore::fake_cuda::current_card;
using fullbore::fake_cuda::Entry;
using fullbore::fake_cuda::kReservedSharedBytes;
using fullbore::fake_cuda::machine;
using fullbore::fake_cuda::multiprocessor;
namespace cuda = fullbore::cuda;

namespace {

bool is_card(int card) { return card >= 0 && card < machine().told.cards; }

// A context is told by the number of its card: no null, and nothing that can be followed.
ContextHandle context_of(int card) {
  return reinterpret_cast<ContextHandle>(static_cast<uintptr_t>(card) + 1);
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &machine().told; }

/// As a new process would find it: for the tests of a card that has failed. Orders are drawn anew from the seed.
void fake_cuda_restart() {
  machine().lost = 0;
  machine().drawn = 0;
  std::memset(machine().told.fault, 0, sizeof machine().told.fault);
}

/// As a new process with untouched settings would find it; what a card that failed still holds is given back.
void fake_cuda_reset() {
  machine().told = {};
  for (auto& [number, card] : machine().cards) {
    for (const auto& [pointer, bytes] : card.allocations) card.memory.free(pointer);
    card.allocations.clear();
    card.allocated_bytes = 0;
  }
  fake_cuda_restart();
}

int cuDriverGetVersion(int* version) {
  const Entry entry("cuDriverGetVersion", Entry::Needs::nothing);
  if (entry.code() == 0) *version = static_cast<int>(machine().told.version);
  return entry.code();
}

int cuInit(unsigned) {
  const Entry entry("cuInit", Entry::Needs::nothing);
  return entry.code() != 0 ? entry.code() : static_cast<int>(machine().told.start);
}

int cuDeviceGetCount(int* count) {
  const Entry entry("cuDeviceGetCount", Entry::Needs::nothing);
  if (entry.code() == 0) *count = static_cast<int>(machine().told.cards);
  return entry.code();
}

int cuDeviceGet(int* card, int number) {
  const Entry entry("cuDeviceGet", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(number)) return cuda::kInvalidDevice;
  *card = number;
  return 0;
}

int cuDeviceGetName(char* name, int bytes, int card) {
  const Entry entry("cuDeviceGetName", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(card)) return cuda::kInvalidDevice;
  std::string text = machine().told.card_name;
  if (text.empty()) text = fmt::format("Fake {}", machine().told.capability);
  std::strncpy(name, text.c_str(), static_cast<size_t>(bytes));
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int card) {
  const Entry entry("cuDeviceTotalMem_v2", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(card)) return cuda::kInvalidDevice;
  *bytes = static_cast<size_t>(machine().told.memory_bytes);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int card) {
  const Entry entry("cuDeviceGetAttribute", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(card)) return cuda::kInvalidDevice;
  const FakeCuda& told = machine().told;
  switch (attribute) {
    case cuda::kMultiprocessorCount: *value = static_cast<int>(told.multiprocessors); break;
    case cuda::kClockKilohertz: *value = 1'800'000; break;
    case cuda::kMemoryClockKilohertz: *value = 2'600'000; break;
    case cuda::kMemoryBusBits: *value = 5120; break;
    case cuda::kCapabilityMajor: *value = static_cast<int>(told.capability / 10); break;
    case cuda::kCapabilityMinor: *value = static_cast<int>(told.capability % 10); break;
    case cuda::kMostThreads: *value = multiprocessor(told.capability).threads; break;
    case cuda::kMostBlocks: *value = multiprocessor(told.capability).blocks; break;
    case cuda::kMostRegisters: *value = multiprocessor(told.capability).registers; break;
    case cuda::kReservedSharedBytes: *value = kReservedSharedBytes; break;
    case cuda::kMostSharedBytes:
      *value = static_cast<int>(told.shared_bytes) + kReservedSharedBytes;
      break;
    case cuda::kMostSharedBytesOptedIn: *value = static_cast<int>(told.shared_bytes); break;
    default: return cuda::kInvalidValue;
  }
  return 0;
}

int cuDevicePrimaryCtxRetain(ContextHandle* context, int card) {
  const Entry entry("cuDevicePrimaryCtxRetain", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(card)) return cuda::kInvalidDevice;
  if (machine().cards[card].retained++ == 0) ++machine().told.contexts;
  *context = context_of(card);
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int card) {
  const Entry entry("cuDevicePrimaryCtxRelease_v2", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  if (!is_card(card) || machine().cards[card].retained == 0) return cuda::kInvalidContext;
  if (--machine().cards[card].retained == 0) --machine().told.contexts;
  return 0;
}

int cuCtxSetCurrent(ContextHandle context) {
  const Entry entry("cuCtxSetCurrent", Entry::Needs::nothing);
  if (entry.code() != 0) return entry.code();
  const int card = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
  if (!is_card(card) || machine().cards[card].retained == 0) return cuda::kInvalidContext;
  current_card = card;
  return 0;
}

}  // extern "C"
