#include "fullbore/monitor/mlflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace fullbore {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

/// As much of a server of MLflow as a run speaks to.
class SmallServer {
 public:
  SmallServer() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~SmallServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// "POST runs/update" and so on, in order.
  std::vector<std::string> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  Json bodies(const std::string& path) {
    const std::lock_guard lock(mutex_);
    Json found = Json::array();
    for (size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i].find(path) != std::string::npos) found.push_back(bodies_[i]);
    return found;
  }
  std::atomic<int> status{200};     ///< of log-batch
  std::atomic<bool> silent{false};  ///< takes connections and says nothing
  bool chunked = false;
  std::atomic<bool> loses_a_run{false};  ///< makes the next run, and does not answer

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept(socket_, nullptr, nullptr);
      if (connection < 0) return;
      std::string request;
      char block[4096];
      size_t length = 0;
      for (;;) {
        const size_t head = request.find("\r\n\r\n");
        const size_t at = request.find("Content-Length: ");
        if (head != std::string::npos) {
          length = at == std::string::npos ? 0 : std::stoul(request.substr(at + 16));
          if (request.size() >= head + 4 + length) break;
        }
        const ssize_t count = ::recv(connection, block, sizeof block, 0);
        if (count <= 0) break;
        request.append(block, static_cast<size_t>(count));
      }
      if (silent) {
        ::recv(connection, block, sizeof block, 0);  // until the client gives up
      } else {
        const std::string answer = reply(request);
        if (!answer.empty()) {
          EXPECT_GT(::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL), 0);
        }
      }
      ::close(connection);
    }
  }

  std::string reply(const std::string& request) {
    const std::lock_guard lock(mutex_);
    const size_t api = request.find("/api/2.0/mlflow/") + 16;
    const std::string path = request.substr(api, request.find(' ', api) - api);
    calls_.push_back(request.substr(0, request.find(' ')) + " " + path);
    const std::string body = request.substr(request.find("\r\n\r\n") + 4);
    bodies_.push_back(body.empty() ? Json() : Json::parse(body));
    int code = 200;
    std::string answer = "{}";
    if (path.starts_with("experiments/get-by-name")) code = 404;
    if (path == "experiments/create") answer = R"({"experiment_id": "7"})";
    if (path == "runs/create") answer = R"({"run": {"info": {"run_id": "abc"}}})";
    if (path == "runs/create" && loses_a_run.exchange(false)) return "";
    if (path == "runs/search") answer = R"({"runs": [{"info": {"run_id": "abc"}, "data": {}}]})";
    if (path == "runs/log-batch") code = status;
    const std::string head = "HTTP/1.1 " + std::to_string(code) + " X\r\n";
    if (!chunked)
      return head + "content-length: " + std::to_string(answer.size()) + "\r\n\r\n" + answer;
    return head + "Transfer-Encoding: chunked\r\n\r\n1\r\n" + answer.substr(0, 1) + "\r\n" +
           (answer.size() > 1 ? fmt::format("{:x}\r\n{}\r\n", answer.size() - 1, answer.substr(1))
                              : "") +
           "0\r\n\r\n";
  }

  int socket_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<std::string> calls_;
  std::vector<Json> bodies_;
  std::thread thread_;
};

MlflowRun run_of(const std::string& url) {
  return {.url = url,
          .experiment = "an experiment",
          .name = "runs/a",
          .parameters = {{"train.steps", "10"}, {"bad:key", std::string(900, 'x')}}};
}

TEST(Mlflow, ARunIsMadeAndItsMetricsAndParametersGoThere) {
  for (const bool chunked : {false, true}) {
    SmallServer server;
    server.chunked = chunked;
    const auto client = MlflowClient::open(run_of(server.url())).take_or_throw();
    client->add("train/loss", 2.5, 10);
    client->add("train/odd:name", 1, 10);
    client->add("train/nothing", std::nan(""), 10);
    client->finish("FINISHED");
    EXPECT_THAT(server.calls(),
                ElementsAre("GET experiments/get-by-name?experiment_name=an%20experiment",
                            "POST experiments/create", "POST runs/create", "POST runs/log-batch",
                            "POST runs/log-batch", "POST runs/update"));
    EXPECT_EQ(server.bodies("runs/create")[0]["experiment_id"], "7");
    EXPECT_EQ(server.bodies("runs/create")[0]["run_name"], "runs/a");
    const Json batches = server.bodies("log-batch");
    EXPECT_EQ(batches[0]["params"][0], (Json{{"key", "train.steps"}, {"value", "10"}}));
    EXPECT_EQ(batches[0]["params"][1]["key"], "bad_key");
    EXPECT_LE(batches[0]["params"][1]["value"].get<std::string>().size(), 500);
    ASSERT_EQ(batches[1]["metrics"].size(), 2);
    EXPECT_EQ(batches[1]["metrics"][0]["value"], 2.5);
    EXPECT_EQ(batches[1]["metrics"][0]["step"], 10);
    EXPECT_EQ(batches[1]["metrics"][1]["key"], "train/odd_name");
    EXPECT_EQ(server.bodies("runs/update")[0]["status"], "FINISHED");
    EXPECT_EQ(client->sent(), 2);
    EXPECT_EQ(client->dropped(), 0);
  }
}

TEST(Mlflow, ARunThatWasMadeWithoutAnAnswerIsFoundAgain) {
  SmallServer server;
  server.loses_a_run = true;
  const auto client = MlflowClient::open(run_of(server.url())).take_or_throw();
  client->add("loss", 1, 1);
  while (server.bodies("runs/log-batch").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  client->finish("FINISHED");
  ASSERT_EQ(server.bodies("runs/create").size(), 1U);
  const Json tag = server.bodies("runs/create")[0]["tags"][1];
  EXPECT_EQ(server.bodies("runs/search")[0]["filter"],
            "tags.fullbore_run = '" + tag["value"].get<std::string>() + "'");
  EXPECT_EQ(server.bodies("runs/log-batch")[0]["run_id"], "abc");
  EXPECT_EQ(client->sent(), 1);
}

TEST(Mlflow, AServerThatIsDownCostsTheMetricsAndNothingElse) {
  std::string url;
  {
    const SmallServer server;
    url = server.url();
  }
  const auto client = MlflowClient::open(run_of(url), 100).take_or_throw();
  for (int i = 0; i < 250; ++i) client->add("loss", i, i);
  EXPECT_EQ(client->dropped(), 150);
  client->finish("FINISHED");
  EXPECT_EQ(client->dropped(), 250);
  EXPECT_THAT(client->take_notices(),
              ::testing::Contains(HasSubstr("250 of 250 metrics were dropped")));
}

TEST(Mlflow, ABatchThatIsRefusedIsNotAskedAgain) {
  SmallServer server;
  server.status = 400;
  MlflowRun run = run_of(server.url());
  run.parameters.clear();
  const auto client = MlflowClient::open(run).take_or_throw();
  client->add("loss", 1, 1);
  client->finish("FAILED");
  EXPECT_EQ(server.bodies("log-batch").size(), 1);
  EXPECT_EQ(server.bodies("runs/update")[0]["status"], "FAILED");
  EXPECT_EQ(client->dropped(), 1);
  EXPECT_THAT(client->take_notices(),
              ElementsAre(HasSubstr("refuses runs/log-batch with status 400"),
                          HasSubstr("1 of 1 metrics were dropped")));
}

TEST(Mlflow, AddressesAreChecked) {
  const HttpAddress address = HttpAddress::parse("http://[::1]:5000/a/b/").take_or_throw();
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, "5000");
  EXPECT_EQ(address.prefix, "/a/b");
  EXPECT_EQ(HttpAddress::parse("http://host").take_or_throw().port, "80");
  for (const auto& [url, why] : std::vector<std::pair<std::string, std::string>>{
           {"https://host", "is encrypted"},
           {"host:5000", "no address"},
           {"http://", "no name of a host"},
           {"http://me:secret@host", "password"},
           {"http://host:0", "no port"},
           {"http://host:99999", "no port"},
           {"http://ho st", "no name of a host"},
           {"http://host/a?b", "more than a path"},
           {"http://host/\r\nX: y", "more than a path"}})
    EXPECT_THAT(HttpAddress::parse(url).error(),
                AllOf(HasSubstr(why), HasSubstr("http://host:port")))
        << url;
}

TEST(Mlflow, AnAnswerIsNotWaitedForForEver) {
  SmallServer server;
  server.silent = true;
  const HttpAddress address = HttpAddress::parse(server.url()).take_or_throw();
  EXPECT_THAT(ask_http(address, "GET", "/", "", 0.05).error(), HasSubstr("no answer"));
}

}  // namespace
}  // namespace fullbore
