#include "fullbore/train/interrupt.h"

#include <atomic>
#include <csignal>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A handler can reach nothing but globals.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler must not lock");
std::atomic<bool> guarded{false};

void remember(int number) {
  int none = 0;
  received.compare_exchange_strong(none, number);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  FB_CHECK(!guarded.exchange(true), "two interrupt guards at once");
  received = 0;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int number : kSignals) {
    struct sigaction old {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (const int number : kSignals) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == remember) std::signal(number, SIG_DFL);
  }
  guarded = false;
}

int InterruptGuard::signal() const { return received.load(std::memory_order_relaxed); }

}  // namespace fullbore
