#include "fullbore/monitor/prometheus.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <new>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/start_thread.h"

namespace fullbore {
namespace {

constexpr int kPollMilliseconds = 100;
// A client that sends nothing, or never ends, is not waited for.
constexpr timeval kPatience = {.tv_sec = 1, .tv_usec = 0};
constexpr size_t kMostRequestBytes = 4096;

std::string gauge_name(const std::string& name) {
  std::string gauge = "fullbore_";
  for (const char c : name) gauge += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return gauge;
}

/// Within quotes, or behind "# HELP": backslashes, quotes and line ends are escaped; what is no UTF-8 is made visible.
std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : printable(value)) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return text;
}

/// The unit that a name ends with, in the words of OpenMetrics; "" for none.
std::string_view unit_of(std::string_view gauge) {
  for (const std::string_view unit :
       {"seconds", "bytes", "watts", "joules", "celsius", "hertz", "ratio"})
    if (gauge.ends_with(unit) && gauge[gauge.size() - unit.size() - 1] == '_') return unit;
  return "";
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // who asked has gone
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

/// The request up to its empty line, or what came of it.
std::string receive(int connection) {
  std::string request;
  char block[512];
  while (request.size() < kMostRequestBytes && request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = ::recv(connection, block, sizeof block, 0);
    if (count <= 0) break;
    request.append(block, static_cast<size_t>(count));
  }
  return request;
}

}  // namespace

Result<std::unique_ptr<PrometheusEndpoint>> PrometheusEndpoint::open(int port,
                                                                     const std::string& run) {
  const auto failure = [&](int socket) {
    const std::string reason = system_reason();
    if (socket >= 0) ::close(socket);
    return Failure{fmt::format("cannot serve metrics on port {} of 127.0.0.1: {}", port, reason)};
  };
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return failure(socket);
  // A run that is resumed at once finds its port in the state TIME_WAIT.
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(socket, any, size) != 0 || ::listen(socket, 8) != 0 ||
      ::getsockname(socket, any, &size) != 0)
    return failure(socket);
  std::unique_ptr<PrometheusEndpoint> endpoint(
      new PrometheusEndpoint(socket, ntohs(address.sin_port), run));
  if (Status started = endpoint->start(); !started.ok()) return Failure{started.error()};
  return endpoint;
}

PrometheusEndpoint::PrometheusEndpoint(int socket, int port, std::string run)
    : socket_(socket), port_(port), run_(std::move(run)) {}

Status PrometheusEndpoint::start() {
  try {
    thread_ = start_quiet_thread("log.prometheus_port", [this] { serve(); });
  } catch (const DataError& error) {
    return Failure{error.what()};
  }
  return success();
}

PrometheusEndpoint::~PrometheusEndpoint() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(socket_);
}

void PrometheusEndpoint::set(const std::string& name, double value, const std::string& help) {
  const std::lock_guard lock(mutex_);
  gauges_[gauge_name(name)] = {value, help};
}

std::string PrometheusEndpoint::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, gauge] : gauges_) {
    text += fmt::format("# TYPE {} gauge\n", name);
    if (const std::string_view unit = unit_of(name); !unit.empty())
      text += fmt::format("# UNIT {} {}\n", name, unit);
    if (!gauge.help.empty()) text += fmt::format("# HELP {} {}\n", name, escaped(gauge.help));
    text += fmt::format("{}{{run=\"{}\"}} {}\n", name, escaped(run_), value_text(gauge.value));
  }
  return text + "# EOF\n";
}

void PrometheusEndpoint::serve() {
  while (!stopping_) {
    pollfd waiting = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kPollMilliseconds) <= 0) continue;
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    try {
      answer(connection);
    } catch (const std::bad_alloc&) {
      // Unanswered: they will ask again, and the run has better uses for what memory is left.
    }
    ::close(connection);
  }
}

void PrometheusEndpoint::answer(int connection) const {
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const std::string request = receive(connection);
  const bool known = request.starts_with("GET /metrics ") || request.starts_with("GET / ");
  const bool open_metrics = request.find("application/openmetrics-text") != std::string::npos;
  const std::string body = known ? text() : "see /metrics\n";
  send_all(connection,
           fmt::format("HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n"
                       "Connection: close\r\n\r\n{}",
                       known ? "200 OK" : "404 Not Found",
                       known && open_metrics ? "application/openmetrics-text; version=1.0.0"
                                             : "text/plain; version=0.0.4",
                       body.size(), body));
}

}  // namespace fullbore
