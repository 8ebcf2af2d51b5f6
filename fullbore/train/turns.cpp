#include "fullbore/train/turns.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/monitor/process.h"

namespace fullbore {
namespace {

/// Signals wake who waits; one that comes just before that is noticed after so long.
constexpr int kSliceMilliseconds = 250;
/// A report: resident bytes, samples and core, then the seconds of each step. Both ends are one executable: no byte order.
constexpr size_t kHeadNumbers = 3;
constexpr size_t kMostNumbers = kHeadNumbers + static_cast<size_t>(kMostStepsOfTurn);

struct Grant {
  int64_t steps = 0;
  int64_t core = -1;
};

/// Has this thread go on there; from then on it may be moved as before. Nothing where it may not run there, or where the machine has
/// more than 1,024 processors.
void move_to_core(int64_t core) {
  cpu_set_t allowed;
  if (core < 0 || core >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      !CPU_ISSET(static_cast<size_t>(core), &allowed))
    return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(core), &one);
  if (::sched_setaffinity(0, sizeof one, &one) == 0)
    ::sched_setaffinity(0, sizeof allowed, &allowed);
}

bool is_readable(int socket, int milliseconds) {
  pollfd waited{.fd = socket, .events = POLLIN, .revents = 0};
  return ::poll(&waited, 1, milliseconds) > 0;
}

/// Without SIGPIPE.
bool send_all(int socket, const void* bytes, size_t size) {
  ssize_t sent = 0;
  do sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

}  // namespace

std::unique_ptr<Turns> Turns::from_environment() {
  const char* text = std::getenv(kTurnsVariable);  // NOLINT(concurrency-mt-unsafe)
  if (!text) return nullptr;
  const std::string_view words = text;
  int number = -1;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  int kind = 0;
  socklen_t size = sizeof kind;
  if (error != std::errc() || end != words.data() + words.size() || number < 3 ||
      ::getsockopt(number, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_SEQPACKET)
    throw DataError(fmt::format("{}={}: is no open socket; the lab sets it for its runs alone",
                                kTurnsVariable, words));
  ::fcntl(number, F_SETFD, FD_CLOEXEC);  // nothing that the run starts has it
  return std::make_unique<Turns>(Descriptor(number));
}

bool Turns::are_asked_for() {
  return std::getenv(kTurnsVariable) != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

bool Turns::wait(const std::function<bool()>& stop) {
  if (granted_ == 0) {
    report();
    while (!is_readable(socket_.get(), kSliceMilliseconds))
      if (stop()) return false;
    Grant grant;
    ssize_t got = 0;
    do got = ::recv(socket_.get(), &grant, sizeof grant, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof grant || grant.steps < 1 || grant.steps > kMostStepsOfTurn)
      throw DataError("whoever gave this run its turns is gone");
    granted_ = grant.steps;
    move_to_core(grant.core);
  }
  --granted_;
  begin_ = std::chrono::steady_clock::now();
  return true;
}

void Turns::step_made(double samples) {
  made_.step_seconds.push_back(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
  made_.samples += samples;
}

void Turns::finish() {
  if (!made_.step_seconds.empty()) report();
}

void Turns::report() {
  std::vector<double> numbers = {static_cast<double>(peak_resident_bytes()), made_.samples,
                                 static_cast<double>(::sched_getcpu())};
  numbers.insert(numbers.end(), made_.step_seconds.begin(), made_.step_seconds.end());
  made_ = {};
  if (!send_all(socket_.get(), numbers.data(), numbers.size() * sizeof(double)))
    throw DataError("whoever gave this run its turns is gone");
}

TurnSockets make_turn_sockets() {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw DataError(fmt::format("cannot make a pair of sockets: {}", system_reason()));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

bool grant_turn(const Descriptor& granting, int64_t steps, int core) {
  const Grant grant{.steps = steps, .core = core};
  return send_all(granting.get(), &grant, sizeof grant);
}

TurnAnswer read_turn(const Descriptor& granting, int milliseconds, TurnReport& report) {
  if (!is_readable(granting.get(), milliseconds)) return TurnAnswer::nothing;
  std::vector<double> numbers(kMostNumbers);
  ssize_t got = 0;
  do got = ::recv(granting.get(), numbers.data(), numbers.size() * sizeof(double), MSG_TRUNC);
  while (got < 0 && errno == EINTR);
  const auto bytes = static_cast<size_t>(std::max<ssize_t>(got, 0));
  if (bytes < kHeadNumbers * sizeof(double) || bytes > kMostNumbers * sizeof(double) ||
      bytes % sizeof(double) != 0)
    return TurnAnswer::gone;
  numbers.resize(bytes / sizeof(double));
  report.resident_peak_bytes = static_cast<int64_t>(numbers[0]);
  report.samples = numbers[1];
  report.core = static_cast<int>(numbers[2]);
  report.step_seconds.assign(numbers.begin() + kHeadNumbers, numbers.end());
  return TurnAnswer::report;
}

}  // namespace fullbore
