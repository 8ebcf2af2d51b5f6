#include "fullbore/base/mapped_faults.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "fullbore/base/error.h"

namespace fullbore {

/// A handler can reach nothing but globals and may not lock: slots are linked once, never freed, and taken again.
struct MappedRange::Slot {
  static constexpr size_t kMostPath = 4096;  // of a longer one the end is left out

  std::atomic<uintptr_t> begin{0};  ///< 0: nobody's
  std::atomic<size_t> bytes{0};
  char path[kMostPath] = {};
  size_t path_length = 0;
  Slot* next = nullptr;
};

/// What the handler reads.
struct MappedFaults {
  using Slot = MappedRange::Slot;
  static inline std::atomic<Slot*> slots{nullptr};
  static inline std::mutex taking;
  static inline struct sigaction before {};
  static_assert(std::atomic<Slot*>::is_always_lock_free &&
                std::atomic<uintptr_t>::is_always_lock_free);

  static void say(std::string_view words) {
    // Whether the words arrive changes nothing.
    if (::write(STDERR_FILENO, words.data(), words.size()) < 0) return;
  }
  static void say(size_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number);
    say({digits, static_cast<size_t>(end.ptr - digits)});
  }

  static void handle(int number, siginfo_t* info, void* /*context*/) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    const bool is_fault = info->si_code > 0;  // and not somebody's kill()
    for (const Slot* slot = slots.load(); is_fault && slot != nullptr; slot = slot->next) {
      const uintptr_t begin = slot->begin.load(std::memory_order_acquire);
      const size_t bytes = slot->bytes.load(std::memory_order_relaxed);
      if (begin == 0 || address < begin || address - begin >= bytes) continue;
      static std::atomic_flag told;
      while (told.test_and_set()) ::pause();  // another thread says it, and ends all of them
      say("fullbore: ");
      say(std::string_view(slot->path, slot->path_length));
      say(": byte ");
      say(address - begin);
      say(" of ");
      say(bytes);
      say(" cannot be read any more: the file was made shorter while it was in use, or its disk "
          "fails\n");
      ::_exit(static_cast<int>(ExitCode::kData));
    }
    // Not of a file of ours: the instruction is repeated, and whoever had the signal before gets it.
    sigaction(number, &before, nullptr);
    if (!is_fault) raise(number);
  }
};

MappedRange::MappedRange(const std::string& path, std::span<const std::byte> bytes) {
  const std::scoped_lock lock(MappedFaults::taking);
  slot_ = MappedFaults::slots.load();
  while (slot_ != nullptr && slot_->begin.load() != 0) slot_ = slot_->next;
  const bool is_new = slot_ == nullptr;
  if (is_new) slot_ = new Slot;
  slot_->path_length = std::min(path.size(), Slot::kMostPath);
  std::copy_n(path.data(), slot_->path_length, slot_->path);
  slot_->bytes.store(bytes.size(), std::memory_order_relaxed);
  // An empty file has no address, and keeps its slot.
  slot_->begin.store(bytes.empty() ? UINTPTR_MAX : reinterpret_cast<uintptr_t>(bytes.data()),
                     std::memory_order_release);
  if (!is_new) return;
  slot_->next = MappedFaults::slots.load();
  MappedFaults::slots.store(slot_);
}

MappedRange::~MappedRange() { slot_->begin.store(0, std::memory_order_release); }

void report_mapped_faults() {
  struct sigaction action {};
  action.sa_sigaction = MappedFaults::handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  struct sigaction found {};
  sigaction(SIGBUS, nullptr, &found);
  if ((found.sa_flags & SA_SIGINFO) != 0 && found.sa_sigaction == MappedFaults::handle) return;
  MappedFaults::before = found;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace fullbore
