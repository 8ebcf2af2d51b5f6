#include "fullbore/train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>
#include <utility>

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

std::atomic<const LeaveOnSignal::Advice*> advice{nullptr};
static_assert(std::atomic<const LeaveOnSignal::Advice*>::is_always_lock_free);

// Whether the words arrive changes nothing.
void say(std::string_view words) {
  if (::write(STDERR_FILENO, words.data(), words.size()) < 0) errno = 0;
}

void leave(int number) {
  const LeaveOnSignal::Advice& known = *advice.load();
  const auto exists = [](const std::string& path) {
    return !path.empty() && ::access(path.c_str(), F_OK) == 0;
  };
  const bool saved = exists(known.checkpoint);
  say(saved ? "fullbore: interrupted, nothing new to save; go on with: "
            : "fullbore: interrupted before anything was saved; start again with: ");
  say(exists(known.config) ? known.resume : known.command);
  say("\n");
  if (saved) ::_exit(static_cast<int>(ExitCode::kInterrupted));
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(number, &action, nullptr);
  raise(number);  // delivered when this handler returns
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

LeaveOnSignal::LeaveOnSignal(std::string command) : before_(advice.load()) {
  advice_.push_back(std::make_unique<Advice>(Advice{std::move(command), "", "", ""}));
  advice = advice_.back().get();
  found_ = install(leave);
}

LeaveOnSignal::~LeaveOnSignal() {
  put_back(found_);
  advice = before_;
}

void LeaveOnSignal::run_is(std::string config, std::string checkpoint, std::string resume) {
  advice_.push_back(std::make_unique<Advice>(Advice{advice_.front()->command, std::move(config),
                                                    std::move(checkpoint), std::move(resume)}));
  advice = advice_.back().get();
}

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

ClosedPipes::ClosedPipes() {
  struct sigaction found = {};
  changed_ = sigaction(SIGPIPE, nullptr, &found) == 0 && found.sa_handler == SIG_DFL;
  if (changed_) ::signal(SIGPIPE, SIG_IGN);
}

ClosedPipes::~ClosedPipes() {
  if (changed_) ::signal(SIGPIPE, SIG_DFL);
}

}  // namespace fullbore
