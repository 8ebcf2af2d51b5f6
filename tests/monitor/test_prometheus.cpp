#include "fullbore/monitor/prometheus.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <string>

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What a server on this port of 127.0.0.1 answers.
std::string ask(int port, const std::string& request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
    char block[4096];
    for (ssize_t count = 0; (count = ::recv(socket, block, sizeof block, 0)) > 0;)
      answer.append(block, static_cast<size_t>(count));
  }
  ::close(socket);
  return answer;
}

TEST(Prometheus, ServesWhatWasSetLast) {
  const auto endpoint = PrometheusEndpoint::open(0, "runs/a\"b\\").take_or_throw();
  ASSERT_GT(endpoint->port(), 0);
  endpoint->set("train_loss", 2.5);
  endpoint->set("train_loss", 1.25);
  endpoint->set("norm/layers.0", std::nan(""));
  const std::string answer = ask(endpoint->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_EQ(body,
            "# TYPE fullbore_norm_layers_0 gauge\n"
            "fullbore_norm_layers_0{run=\"runs/a\\\"b\\\\\"} NaN\n"
            "# TYPE fullbore_train_loss gauge\n"
            "fullbore_train_loss{run=\"runs/a\\\"b\\\\\"} 1.25\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(body.size())));
  EXPECT_THAT(ask(endpoint->port(), "GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(endpoint->port(), std::string(5000, 'x')), ::testing::Not(HasSubstr("200")));
  EXPECT_THAT(ask(endpoint->port(), "GET /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(Prometheus, IsBoundToThisMachineAlone) {
  const auto endpoint = PrometheusEndpoint::open(0, "run").take_or_throw();
  // Another socket may take the same port on every other address only if we have left them alone.
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint->port()));
  inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
}

TEST(Prometheus, APortThatIsTakenIsNamed) {
  const auto endpoint = PrometheusEndpoint::open(0, "run").take_or_throw();
  EXPECT_THAT(
      PrometheusEndpoint::open(endpoint->port(), "other").error(),
      HasSubstr(std::to_string(endpoint->port()) + " of 127.0.0.1: Address already in use"));
}

}  // namespace
}  // namespace fullbore
