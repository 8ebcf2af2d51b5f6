#include "fullbore/monitor/http_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <memory>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostAnswerBytes = size_t{1} << 20;

/// A socket that gives up at a time.
class Connection {
 public:
  Connection(int socket, Clock::time_point deadline) : socket_(socket), deadline_(deadline) {}
  ~Connection() {
    if (socket_ >= 0) ::close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Waits for POLLIN or POLLOUT; false at the deadline.
  bool wait(short events) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) return false;
      pollfd waiting = {.fd = socket_, .events = events, .revents = 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
  }

  bool connect(const addrinfo& address) const {
    if (::connect(socket_, address.ai_addr, address.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS) return false;
    if (!wait(POLLOUT)) {
      errno = ETIMEDOUT;
      return false;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error == 0;
  }

  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0)
        bytes.remove_prefix(static_cast<size_t>(sent));
      else if ((errno != EAGAIN && errno != EINTR) || !wait(POLLOUT))
        return false;
    }
    return true;
  }

  /// More of the answer; 0 at its end, -1 where it does not come.
  ssize_t receive(char* block, size_t bytes) const {
    for (;;) {
      const ssize_t count = ::recv(socket_, block, bytes, 0);
      if (count >= 0) return count;
      if ((errno != EAGAIN && errno != EINTR) || !wait(POLLIN)) return -1;
    }
  }

 private:
  int socket_;
  Clock::time_point deadline_;
};

/// The value of a header, in small letters; "" without one. `head`: in small letters.
std::string_view header(std::string_view head, std::string_view name) {
  const size_t at = head.find(fmt::format("\r\n{}:", name));
  if (at == std::string_view::npos) return "";
  std::string_view value = head.substr(at + name.size() + 3);
  value = value.substr(0, value.find("\r\n"));
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

/// Pieces "size in hexadecimal, line end, bytes, line end", up to one of size 0. Nothing while some are missing.
bool take_chunks(std::string_view text, std::string& body) {
  body.clear();
  for (;;) {
    size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size, 16);
    const size_t line = text.find("\r\n");
    if (error != std::errc() || line == std::string_view::npos || size > kMostAnswerBytes)
      return false;
    text.remove_prefix(line + 2);
    if (size == 0) return true;
    if (text.size() < size + 2) return false;
    body += text.substr(0, size);
    text.remove_prefix(size + 2);
  }
}

/// Whether all of the answer is there.
bool is_whole(const std::string& text, bool at_end, HttpAnswer& answer) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || !text.starts_with("HTTP/1.")) return false;
  std::string head = text.substr(0, end + 2);
  std::ranges::transform(head, head.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  const size_t blank = std::min(head.find(' '), head.size() - 1);
  std::from_chars(head.data() + blank + 1, head.data() + head.size(), answer.status);
  const std::string_view rest = std::string_view(text).substr(end + 4);
  if (header(head, "transfer-encoding") == "chunked") return take_chunks(rest, answer.body);
  const std::string_view length = header(head, "content-length");
  size_t bytes = 0;
  if (length.empty()) {
    answer.body = rest;
    return at_end;
  }
  const auto [number_end, error] =
      std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (error != std::errc() || rest.size() < bytes) return false;
  answer.body = rest.substr(0, bytes);
  return true;
}

}  // namespace

Result<HttpAddress> HttpAddress::parse(std::string_view url) {
  const auto wrong = [&](const char* what) {
    return Failure{fmt::format("'{}' {}; \"http://host:port\" is expected", excerpt(url), what)};
  };
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme))
    return wrong(url.starts_with("https://") ? "is encrypted, which is not spoken here"
                                             : "is no address of a server");
  url.remove_prefix(kScheme.size());
  HttpAddress address;
  const std::string_view place = url.substr(0, url.find('/'));
  address.prefix = url.substr(place.size());
  while (address.prefix.ends_with('/')) address.prefix.pop_back();
  if (address.prefix.find_first_of("?# \r\n") != std::string::npos)
    return wrong("has more than a path");
  if (place.find('@') != std::string_view::npos)
    return wrong("holds a name or a password, which would be kept with the run");
  const size_t colon = place.ends_with(']') ? std::string_view::npos : place.rfind(':');
  address.host = place.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_:").find(c) != std::string_view::npos;
  };
  if (address.host.empty() || !std::ranges::all_of(address.host, is_name))
    return wrong("has no name of a host");
  if (colon == std::string_view::npos) return address;
  address.port = place.substr(colon + 1);
  int port = 0;
  const auto [end, error] =
      std::from_chars(address.port.data(), address.port.data() + address.port.size(), port);
  if (error != std::errc() || end != address.port.data() + address.port.size() || port < 1 ||
      port > 65535)
    return wrong("has no port of 1 to 65535");
  return address;
}

Result<HttpAnswer> ask_http(const HttpAddress& address, std::string_view method,
                            std::string_view path, std::string_view body, double seconds) {
  const auto failure = [&](std::string_view why) {
    return Failure{
        fmt::format("http://{}:{}{}: {}", address.host, address.port, address.prefix, why)};
  };
  const Clock::time_point deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                        std::chrono::duration<double>(seconds));
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
      code != 0)
    return failure(::gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  std::string reason = "no address";
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    const Connection connection(
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                 each->ai_protocol),
        deadline);
    if (!connection.connect(*each)) {
      reason = system_reason();
      continue;
    }
    const std::string request = fmt::format(
        "{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: fullbore\r\nAccept: "
        "application/json\r\nConnection: close\r\n{}\r\n{}",
        method, address.prefix, path, address.host, address.port,
        body.empty()
            ? ""
            : fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size()),
        body);
    if (!connection.send(request)) return failure("it takes no request");
    std::string text;
    HttpAnswer answer;
    char block[16384];
    for (;;) {
      const ssize_t count = connection.receive(block, sizeof block);
      if (count < 0) return failure("no answer");
      text.append(block, static_cast<size_t>(count));
      if (is_whole(text, count == 0, answer)) return answer;
      if (count == 0) return failure("the answer is cut off, or is none of HTTP");
      if (text.size() > kMostAnswerBytes) return failure("the answer is too long");
    }
  }
  return failure(reason);
}

std::string url_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace fullbore
