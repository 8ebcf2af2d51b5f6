#include "fullbore/monitor/prometheus.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

/// What a reader of OpenMetrics 1.0.0 makes of a text of gauges: values by name and label, or why it is none. Written
/// after the specification's grammar (ABNF), not after what writes it.
struct OpenMetrics {
  std::map<std::string, double> values;
  std::map<std::string, std::string> units;
  std::string error;
};
OpenMetrics parse_open_metrics(const std::string& text) {
  OpenMetrics result;
  std::string family;
  std::set<std::string> families;
  bool has_type = false, has_unit = false, has_help = false, has_sample = false, ended = false;
  std::istringstream lines(text);
  const auto fails = [&](const std::string& why, const std::string& line) {
    result.error = why + ": " + line;
    return result;
  };
  if (text.empty() || text.back() != '\n') return fails("no line end", text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch part;
    static const std::regex kMeta("# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)");
    static const std::regex kSample(
        "([a-zA-Z_:][a-zA-Z0-9_:]*)\\{([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\\\\\"]|\\\\[\\\\\"n])*)"
        "\"\\} "
        "(NaN|[+-]Inf|[+-]?[0-9]+(?:\\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)");
    if (ended) return fails("behind the end", line);
    if (line == "# EOF") {
      ended = true;
    } else if (std::regex_match(line, part, kMeta)) {
      if (part[2] != family) {
        if (!families.insert(part[2]).second) return fails("a family in two pieces", line);
        family = part[2];
        has_type = has_unit = has_help = has_sample = false;
      }
      bool& has = part[1] == "TYPE" ? has_type : part[1] == "UNIT" ? has_unit : has_help;
      if (std::exchange(has, true)) return fails("told twice", line);
      if (has_sample) return fails("behind a sample", line);
      if (part[1] == "TYPE" && part[3] != "gauge") return fails("no type that is expected", line);
      if (part[1] == "UNIT" && !family.ends_with("_" + part[3].str()))
        return fails("the name does not end with its unit", line);
      if (part[1] == "UNIT") result.units[family] = part[3];
      if (part[1] == "HELP" &&
          !std::regex_match(part[3].str(), std::regex("(?:[^\\\\\"]|\\\\[\\\\\"n])*")))
        return fails("help with what must be escaped", line);
    } else if (std::regex_match(line, part, kSample)) {
      if (part[1] != family || !has_type) return fails("a sample of no family", line);
      if (!result.values.emplace(part[1], std::strtod(part[4].str().c_str(), nullptr)).second)
        return fails("a sample twice", line);
      has_sample = true;
    } else {
      return fails("no line of OpenMetrics", line);
    }
  }
  if (!ended) result.error = "no end";
  return result;
}

TEST(Prometheus, SpeaksOpenMetrics) {
  const auto endpoint = PrometheusEndpoint::open(0, "runs/\xff\"a\\\n").take_or_throw();
  endpoint->set("train_loss", -1.5e-7, "loss of train records");
  endpoint->set("train_seconds", 12);
  endpoint->set("sensor_cpu.power.draw_watts", 41.5, "a \"b\" \\ \n c");
  endpoint->set("seconds", std::numeric_limits<double>::infinity());
  endpoint->set("utilisation", std::nan(""));
  const std::string answer = ask(
      endpoint->port(),
      "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n");
  EXPECT_THAT(
      answer,
      HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  const OpenMetrics read = parse_open_metrics(answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.values.at("fullbore_train_loss"), -1.5e-7);
  EXPECT_EQ(read.values.at("fullbore_sensor_cpu_power_draw_watts"), 41.5);
  EXPECT_EQ(read.units.at("fullbore_sensor_cpu_power_draw_watts"), "watts");
  EXPECT_EQ(read.units.at("fullbore_train_seconds"), "seconds");
  EXPECT_EQ(read.units.count("fullbore_utilisation"), 0);
  EXPECT_EQ(read.values.size(), 5);
}

TEST(Prometheus, TheReaderOfTheseTestsRefusesWhatIsNoOpenMetrics) {
  const std::string type = "# TYPE a gauge\n";
  const std::vector<std::string> all_wrong = {
      type + "a{run=\"r\"} 1\n",          type + "a{run=\"r\"} 1\n# EOF\n" + type,
      "a{run=\"r\"} 1\n# EOF\n",          type + "# UNIT a watts\n# EOF\n",
      type + "a{run=\"\\r\"} 1\n# EOF\n", type + type + "# EOF\n",
      type + "a{run=\"r\"} one\n# EOF\n", type + "a{run=\"r\"} 1\na{run=\"r\"} 2\n# EOF\n"};
  for (const std::string& wrong : all_wrong)
    EXPECT_NE(parse_open_metrics(wrong).error, "") << wrong;
  EXPECT_EQ(parse_open_metrics(type + "a{run=\"r\"} 1\n# EOF\n").error, "");
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
            "fullbore_train_loss{run=\"runs/a\\\"b\\\\\"} 1.25\n"
            "# EOF\n");
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
