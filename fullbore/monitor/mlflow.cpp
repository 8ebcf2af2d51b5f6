#include "fullbore/monitor/mlflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/base/start_thread.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr const char* kApi = "/api/2.0/mlflow/";
constexpr const char* kTag = "fullbore_run";  // by which a client finds the run that it asked for
constexpr double kRequestSeconds = 3;
constexpr size_t kMetricsAtOnce = 1000;    // the most that a server takes
constexpr size_t kParametersAtOnce = 100;  // the most that it takes
constexpr size_t kMostParameterBytes = 500;
constexpr size_t kMostNotices = 20;
constexpr auto kGathering = 1s;  // metrics of a second go together
constexpr auto kLongestPause = 60s;

int64_t milliseconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Letters, digits and "_-. /" stay; MLflow takes no others in names.
std::string metric_name(const std::string& name) {
  std::string text = name.substr(0, 250);
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("_-. /").find(c) == std::string_view::npos)
      c = '_';
  return text;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// The text at a path of objects; "" without one.
std::string text_at(const std::string& json, std::initializer_list<const char*> path) {
  const Result<Json> parsed = parse_ordered_json(json);
  if (!parsed.ok()) return "";
  const Json* at = &parsed.value();
  for (const char* const key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

/// The first run of an answer to runs/search; "" without one.
std::string first_run(const std::string& json) {
  const Result<Json> parsed = parse_ordered_json(json);
  if (!parsed.ok() || !parsed.value().is_object()) return "";
  const Json& runs = parsed.value().value("runs", Json());
  return runs.is_array() && !runs.empty() ? text_at(dumped(runs[0]), {"info", "run_id"}) : "";
}

std::string random_tag() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

Result<std::unique_ptr<MlflowClient>> MlflowClient::open(MlflowRun run, size_t most_queued) {
  Result<HttpAddress> address = HttpAddress::parse(run.url);
  if (!address.ok()) return Failure{address.error()};
  std::unique_ptr<MlflowClient> client(
      new MlflowClient(std::move(run), std::move(address).value(), most_queued));
  try {
    client->thread_ = start_quiet_thread("log.mlflow", [made = client.get()] { made->work(); });
  } catch (const DataError& error) {
    return Failure{error.what()};
  }
  return client;
}

MlflowClient::MlflowClient(MlflowRun run, HttpAddress address, size_t most_queued)
    : run_(std::move(run)),
      address_(std::move(address)),
      most_queued_(most_queued),
      tag_(random_tag()) {}

MlflowClient::~MlflowClient() { finish("KILLED"); }

void MlflowClient::add(const std::string& name, double value, int64_t step) {
  if (!std::isfinite(value)) return;
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= most_queued_) {
    if (dropped_++ == 0)
      notices_.push_back(fmt::format(
          "MLflow: {} metrics wait for {} already: later ones are dropped until it takes them",
          queue_.size(), run_.url));
    return;
  }
  queue_.push_back({metric_name(name), value, step, milliseconds_since_1970()});
  changed_.notify_all();
}

void MlflowClient::finish(const std::string& status, double seconds) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    end_status_ = status;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return is_over_; });
    gives_up_ = true;
  }
  thread_.join();
  const std::lock_guard lock(mutex_);
  dropped_ += static_cast<int64_t>(queue_.size());
  queue_.clear();
  if (dropped_ > 0)
    notices_.push_back(
        fmt::format("MLflow: {} of {} metrics were dropped", dropped_, dropped_ + sent_));
}

std::vector<std::string> MlflowClient::take_notices() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notices_, {});
}

int64_t MlflowClient::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

int64_t MlflowClient::sent() const {
  const std::lock_guard lock(mutex_);
  return sent_;
}

void MlflowClient::note(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (notices_.size() < kMostNotices) notices_.push_back(std::move(sentence));
}

void MlflowClient::work() {
  auto pause = std::chrono::seconds(1);
  for (;;) {
    std::deque<Metric> batch;
    {
      std::unique_lock lock(mutex_);
      const bool was_down = is_down_;
      changed_.wait_for(lock, was_down ? pause : std::chrono::seconds(kGathering), [&] {
        return stopping_ || (!was_down && queue_.size() >= kMetricsAtOnce);
      });
      if (gives_up_ || (stopping_ && was_down)) break;
      const size_t count = std::min(queue_.size(), kMetricsAtOnce);
      std::move(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count),
                std::back_inserter(batch));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    const bool went = begin_run() && send_parameters() && send(batch);
    bool is_done = false;
    {
      const std::lock_guard lock(mutex_);
      // A batch that is refused would be refused again; without a run there all waits.
      const bool is_refused = is_refused_ && !run_id_.empty();
      if (went)
        sent_ += static_cast<int64_t>(batch.size());
      else if (is_refused)
        dropped_ += static_cast<int64_t>(batch.size());
      else
        queue_.insert(queue_.begin(), batch.begin(), batch.end());
      is_down_ = !went && !is_refused;
      is_done = stopping_ && queue_.empty();
    }
    pause =
        went ? std::chrono::seconds(1) : std::min<std::chrono::seconds>(2 * pause, kLongestPause);
    if (went && is_done) {
      end_run(end_status_);
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

std::string MlflowClient::ask(const std::string& method, const std::string& path,
                              const std::string& body) {
  is_refused_ = false;
  const Result<HttpAnswer> answer = ask_http(address_, method, kApi + path, body, kRequestSeconds);
  const bool known_down = [&] {
    const std::lock_guard lock(mutex_);
    return is_down_;
  }();
  if (!answer.ok()) {
    if (!known_down) note(fmt::format("MLflow: {}; it is asked again", answer.error()));
    return "";
  }
  const int status = answer.value().status;
  if (status == 200) {
    if (known_down) {
      note(fmt::format("MLflow: {} answers again", run_.url));
      const std::lock_guard lock(mutex_);
      is_down_ = false;
    }
    return answer.value().body.empty() ? "{}" : answer.value().body;
  }
  is_refused_ = status >= 400 && status < 500;
  if (!known_down)
    note(fmt::format("MLflow: {} refuses {} with status {}: {}", run_.url,
                     path.substr(0, path.find('?')), status, excerpt(answer.value().body, 200)));
  return "";
}

bool MlflowClient::begin_run() {
  if (!run_id_.empty()) return true;
  const std::string found = "experiments/get-by-name?experiment_name=" + url_text(run_.experiment);
  const Result<HttpAnswer> known = ask_http(address_, "GET", kApi + found, "", kRequestSeconds);
  std::string experiment;
  if (known.ok() && known.value().status == 200)
    experiment = text_at(known.value().body, {"experiment", "experiment_id"});
  // 404: there is none of this name. All else is told by asking for a new one.
  if (experiment.empty())
    experiment = text_at(ask("POST", "experiments/create", dumped({{"name", run_.experiment}})),
                         {"experiment_id"});
  if (experiment.empty()) return false;
  // A server that did not answer in time may have made the run nevertheless.
  if (asked_for_run_) {
    const std::string searched = ask("POST", "runs/search",
                                     dumped({{"experiment_ids", Json::array({experiment})},
                                             {"filter", fmt::format("tags.{} = '{}'", kTag, tag_)},
                                             {"max_results", 1}}));
    if (searched.empty() && !is_refused_) return false;
    run_id_ = first_run(searched);
    if (!run_id_.empty()) return true;
  }
  asked_for_run_ = true;
  const Json wanted = {
      {"experiment_id", experiment},
      {"run_name", excerpt(run_.name, 200)},
      {"start_time", milliseconds_since_1970()},
      {"tags",
       {{{"key", "mlflow.source.name"}, {"value", "fullbore"}}, {{"key", kTag}, {"value", tag_}}}}};
  run_id_ = text_at(ask("POST", "runs/create", dumped(wanted)), {"run", "info", "run_id"});
  return !run_id_.empty();
}

bool MlflowClient::send_parameters() {
  while (parameters_sent_ < run_.parameters.size()) {
    const size_t end = std::min(parameters_sent_ + kParametersAtOnce, run_.parameters.size());
    Json list = Json::array();
    for (size_t i = parameters_sent_; i < end; ++i)
      list.push_back({{"key", metric_name(run_.parameters[i].first)},
                      {"value", excerpt(run_.parameters[i].second, kMostParameterBytes - 3)}});
    const bool went =
        !ask("POST", "runs/log-batch", dumped({{"run_id", run_id_}, {"params", list}})).empty();
    if (!went && !is_refused_) return false;
    parameters_sent_ = end;
  }
  return true;
}

bool MlflowClient::send(const std::deque<Metric>& metrics) {
  if (metrics.empty()) return true;
  Json list = Json::array();
  for (const Metric& each : metrics)
    list.push_back({{"key", each.name},
                    {"value", each.value},
                    {"timestamp", each.milliseconds},
                    {"step", each.step}});
  return !ask("POST", "runs/log-batch", dumped({{"run_id", run_id_}, {"metrics", list}})).empty();
}

bool MlflowClient::end_run(const std::string& status) {
  return !ask("POST", "runs/update",
              dumped({{"run_id", run_id_},
                      {"status", status},
                      {"end_time", milliseconds_since_1970()}}))
              .empty();
}

}  // namespace fullbore
