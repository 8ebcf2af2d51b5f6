#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/http_client.h"

namespace fullbore {

struct MlflowRun {
  std::string url;         ///< "http://host:port"
  std::string experiment;  ///< is made where the server has none of this name
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;
};

/// Hands metrics to a server of MLflow by its REST interface, version 2.0, on a thread of its own. Whoever adds a metric never
/// waits: it goes into a queue of bounded length, and where that is full, for the server is slow or down, the metric is
/// dropped and counted. A server that was down is asked again, ever more seldom.
/// Source: https://mlflow.org/docs/latest/rest-api.html
class MlflowClient {
 public:
  static constexpr size_t kMostQueued = 20'000;

  /// Begins a run there as soon as the server answers. Failure: the address is none, or the system refuses a thread.
  static Result<std::unique_ptr<MlflowClient>> open(MlflowRun run,
                                                    size_t most_queued = kMostQueued);
  ~MlflowClient();  ///< as finish("KILLED")
  MlflowClient(const MlflowClient&) = delete;
  MlflowClient& operator=(const MlflowClient&) = delete;

  /// Values that are not finite, which JSON has not, are left out.
  void add(const std::string& name, double value, int64_t step);
  /// Sends what is queued, and the end. Waits for at most `seconds`, and not at all for a server that was down when it was last
  /// asked. `status`: "FINISHED", "FAILED" or "KILLED".
  void finish(const std::string& status, double seconds = 5);

  std::vector<std::string> take_notices();  ///< sentences since the last call
  int64_t dropped() const;
  int64_t sent() const;

 private:
  struct Metric {
    std::string name;
    double value;
    int64_t step;
    int64_t milliseconds;  ///< since 1970
  };
  MlflowClient(MlflowRun run, HttpAddress address, size_t most_queued);
  void work();
  bool begin_run();
  bool send_parameters();
  bool send(const std::deque<Metric>& metrics);
  bool end_run(const std::string& status);
  /// The answer's JSON as text; "" where it failed, which is noted once until it goes again.
  std::string ask(const std::string& method, const std::string& path, const std::string& body);
  void note(std::string sentence);

  const MlflowRun run_;
  const HttpAddress address_;
  const size_t most_queued_;
  const std::string tag_;  ///< of the run there
  bool asked_for_run_ = false;
  std::string run_id_;
  size_t parameters_sent_ = 0;
  bool is_refused_ = false;  ///< the last request was answered by a refusal

  mutable std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  std::deque<Metric> queue_;
  std::vector<std::string> notices_;
  int64_t dropped_ = 0;
  int64_t sent_ = 0;
  bool is_down_ = false;
  bool stopping_ = false;
  bool gives_up_ = false;  ///< the thread is to end after the request that it waits for
  bool is_over_ = false;   ///< it has
  std::string end_status_;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace fullbore
