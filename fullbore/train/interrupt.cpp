#include "fullbore/train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A handler can reach nothing but globals.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler must not lock");
std::atomic<int> keyboard_interrupts{0};
std::atomic<bool> guarded{false};

void remember(int number) {
  int none = 0;
  received.compare_exchange_strong(none, number);
  if (number != SIGINT || keyboard_interrupts.fetch_add(1) == 0) return;
  const int reason = errno;
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGINT, &action, nullptr);
  raise(SIGINT);  // delivered when this handler returns
  errno = reason;
}

void leave(int) {
  constexpr std::string_view kWords =
      "fullbore: interrupted with nothing left to save; run again with --resume\n";
  // Whether the words arrive changes nothing.
  if (::write(STDERR_FILENO, kWords.data(), kWords.size()) < 0) errno = 0;
  ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

std::vector<struct sigaction> install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  std::vector<struct sigaction> found;
  for (const int number : kSignals) {
    struct sigaction& old = found.emplace_back();
    sigaction(number, nullptr, &old);
    if (old.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  return found;
}

void put_back(const std::vector<struct sigaction>& found) {
  for (size_t i = 0; i < found.size(); ++i) sigaction(kSignals[i], &found[i], nullptr);
}

}  // namespace

LeaveOnSignal::LeaveOnSignal() : found_(install(leave)) {}
LeaveOnSignal::~LeaveOnSignal() { put_back(found_); }

void LeaveOnSignal::done() {
  install(SIG_IGN);
  for (struct sigaction& found : found_) found.sa_handler = SIG_IGN;
}

InterruptGuard::InterruptGuard() {
  FB_CHECK(!guarded.exchange(true), "two interrupt guards at once");
  received = 0;
  keyboard_interrupts = 0;
  found_ = install(remember);
}

InterruptGuard::~InterruptGuard() {
  put_back(found_);
  guarded = false;
}

int InterruptGuard::signal() const { return received.load(std::memory_order_relaxed); }

}  // namespace fullbore
