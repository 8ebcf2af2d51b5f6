#include "workloads/chess/engine_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "fullbore/base/files.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/threads.h"
#include "workloads/chess/analysis_cache.h"
#include "workloads/chess/engine_process.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/uci_analysis.h"

namespace fullbore::chess {
namespace {

constexpr double kMostBackOffSeconds = 5;
/// An engine that has given so many positions up in a row is rested: a run does not wait for every position's deadlines.
constexpr int64_t kMostGivenUp = 8;
constexpr std::chrono::seconds kRest{5};

void check_options(const EngineOptions& options) {
  const auto refuse = [](const char* what) { throw UsageError(fmt::format("engine: {}", what)); };
  if (options.processes < 0 || options.processes > 1024) refuse("processes is 0 to 1024");
  if (options.moves < 1 || options.moves > 500) refuse("moves is 1 to 500");
  if (options.depth < 0 || options.nodes < 0 || (options.depth == 0) == (options.nodes == 0))
    refuse("one of depth and nodes is above 0, the other is 0");
  if (!(options.answer_seconds > 0 && options.start_seconds > 0 && options.back_off_seconds >= 0))
    refuse("seconds are above 0");
  if (options.attempts < 1) refuse("attempts is at least 1");
  for (const auto& [name, value] : options.settings)
    for (const std::string& text : {name, value})
      if (text.find_first_of("\r\n") != text.npos) refuse("a setting has a line end");
}

std::shared_future<EngineAnalysis> ready(EngineAnalysis analysis) {
  std::promise<EngineAnalysis> promise;
  promise.set_value(std::move(analysis));
  return promise.get_future().share();
}

struct Task {
  std::string fen;
  std::promise<EngineAnalysis> promise;
  int64_t attempts = 0;
};

}  // namespace

std::string find_stockfish() {
  for (const char* path :
       {"/usr/games/stockfish", "/usr/local/bin/stockfish", "/usr/bin/stockfish"}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path;
  }
  return "";
}

std::string stockfish_missing_text() {
  return "there is no Stockfish on this machine: apt install stockfish, or name another engine by "
         "its path";
}

struct EnginePool::Shared {
  explicit Shared(EngineOptions given) : options(std::move(given)) {}

  void work();
  void stop();
  bool pause(double seconds);
  std::optional<EngineProcess> started(int64_t& failures);
  std::unique_ptr<Task> next_task();
  EngineAnalysis attempt(std::optional<EngineProcess>& engine, const Task& task, int64_t& failures);
  bool is_resting(Task& task);
  void settle(Task& task, EngineAnalysis analysis);

  EngineOptions options;
  std::function<bool()> is_stopped = [this] { return stopping.load(); };
  std::atomic<bool> stopping = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::unique_ptr<Task>> queue;
  std::unordered_map<std::string, std::shared_future<EngineAnalysis>> asked;  ///< not yet answered
  std::string problem;  ///< of the first engine that did not start
  int64_t failed_starts = 0;
  std::string name;
  /// From when the first engine has greeted: its name is in the key.
  std::optional<AnalysisCache> cache;
  int64_t given_up = 0;                          ///< positions in a row
  std::chrono::steady_clock::time_point rested;  ///< when one more is tried
  EngineCounts counts;
  std::vector<std::thread> threads;
};

/// Sleeps, unless the pool ends meanwhile: then false.
bool EnginePool::Shared::pause(double seconds) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stopping.load(); });
  return !stopping;
}

/// An engine that has greeted; none if it did not, or the pool ends. `failures`: in a row, of this thread's engines.
std::optional<EngineProcess> EnginePool::Shared::started(int64_t& failures) {
  constexpr int64_t kMostDoublings = 20;
  if (failures > 1) {
    const int64_t doubled = int64_t{1} << std::min(failures - 2, kMostDoublings);
    const double seconds = options.back_off_seconds * static_cast<double>(doubled);
    if (!pause(std::min(seconds, kMostBackOffSeconds))) return std::nullopt;
  }
  Result<EngineProcess> engine = EngineProcess::start(options, is_stopped);
  const std::lock_guard lock(mutex);
  ++counts.starts;
  if (!engine.ok()) {
    ++failures;
    ++failed_starts;
    if (problem.empty()) problem = engine.error();
    changed.notify_all();
    return std::nullopt;
  }
  if (!cache) {
    name = engine.value().name();
    cache.emplace(options.cache_path, analysis_settings(options, name));
    changed.notify_all();
  }
  return std::move(engine).value();
}

void EnginePool::Shared::settle(Task& task, EngineAnalysis analysis) {
  {
    const std::lock_guard lock(mutex);
    ++(analysis.ok() ? counts.analysed : counts.failed);
    given_up = analysis.ok() ? 0 : given_up + 1;
    asked.erase(task.fen);
    if (analysis.ok()) cache->put(task.fen, analysis.value());
  }
  task.promise.set_value(std::move(analysis));
}

/// Whether the position is not to be tried. One now and then is, once, to see whether the engine has come back.
bool EnginePool::Shared::is_resting(Task& task) {
  const std::lock_guard lock(mutex);
  if (given_up < kMostGivenUp) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < rested) return true;
  rested = now + kRest;
  task.attempts = options.attempts;
  return false;
}

/// The next position, or none when the pool ends.
std::unique_ptr<Task> EnginePool::Shared::next_task() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stopping || !queue.empty(); });
  if (stopping) return nullptr;
  std::unique_ptr<Task> task = std::move(queue.front());
  queue.pop_front();
  if (task->attempts++ > 0) ++counts.retries;
  return task;
}

EngineAnalysis EnginePool::Shared::attempt(std::optional<EngineProcess>& engine, const Task& task,
                                           int64_t& failures) {
  if (!engine) engine = started(failures);
  if (!engine) return Failure{"it does not start"};
  EngineTrouble trouble = EngineTrouble::none;
  EngineAnalysis analysis = engine->analyse(task.fen, trouble);
  if (analysis.ok()) {
    failures = 0;
    return analysis;
  }
  engine.reset();
  ++failures;
  const std::lock_guard lock(mutex);
  if (trouble == EngineTrouble::silent) ++counts.silent;
  if (trouble == EngineTrouble::died) ++counts.died;
  if (trouble == EngineTrouble::refused) ++counts.refused;
  return analysis;
}

/// What each thread does. Engines end with the thread that started them, so each has its own.
void EnginePool::Shared::work() {
  int64_t failures = 0;
  std::optional<EngineProcess> engine = started(failures);
  while (std::unique_ptr<Task> task = next_task()) {
    if (is_resting(*task)) {
      settle(*task,
             Failure{fmt::format("{}: no analysis of {}: it has given up {} positions or more "
                                 "in a row and is tried again later",
                                 options.path, task->fen, kMostGivenUp)});
      continue;
    }
    EngineAnalysis analysis = attempt(engine, *task, failures);
    if (analysis.ok()) {
      settle(*task, std::move(analysis));
    } else if (stopping || task->attempts >= options.attempts) {
      settle(*task, Failure{fmt::format("{}: no analysis of {} in {} attempts: {}", options.path,
                                        task->fen, task->attempts, analysis.error())});
    } else {
      const std::lock_guard lock(mutex);
      queue.push_front(std::move(task));  // for whichever engine is free first
      changed.notify_all();
    }
  }
  if (engine) engine->quit(std::chrono::milliseconds(200));
}

void EnginePool::Shared::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
  for (const std::unique_ptr<Task>& task : queue)
    task->promise.set_value(Failure{fmt::format("{}: the pool ended", task->fen)});
  queue.clear();
}

EnginePool::EnginePool(EngineOptions options) {
  check_options(options);
  if (options.path.empty()) {
    options.path = find_stockfish();
    if (options.path.empty()) throw DataError(stockfish_missing_text());
  }
  if (options.processes == 0) options.processes = available_processors();
  if (!options.cache_path.empty()) {
    const std::string folder = std::filesystem::path(options.cache_path).parent_path();
    if (const Status made = make_folders(folder.empty() ? "." : folder); !made.ok())
      throw DataError(made.error());
  }
  shared_ = std::make_unique<Shared>(std::move(options));
  Shared& shared = *shared_;
  try {
    for (int64_t i = 0; i < shared.options.processes; ++i)
      shared.threads.push_back(start_thread("a chess engine", [&shared] { shared.work(); }));
  } catch (const Error&) {
    shared.stop();
    throw;
  }
  std::unique_lock lock(shared.mutex);
  shared.changed.wait(
      lock, [&] { return shared.cache || shared.failed_starts >= shared.options.processes; });
  if (shared.cache) return;
  const std::string problem = shared.problem;
  lock.unlock();
  shared.stop();
  throw DataError(problem);
}

EnginePool::~EnginePool() { shared_->stop(); }

std::shared_future<EngineAnalysis> EnginePool::submit(const std::string& fen) {
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return ready(Failure{describe_fen_error(error, fen)});
  const size_t expected = std::min(static_cast<size_t>(shared_->options.moves),
                                   static_cast<size_t>(count_legal_moves(position)));
  if (expected == 0) return ready(Failure{fmt::format("{}: there is no legal move", fen)});
  const std::lock_guard lock(shared_->mutex);
  ++shared_->counts.positions;
  // A file of others is believed no more than an engine.
  if (auto found = shared_->cache->find(fen);
      found && analysis_problem(position, expected, *found).empty()) {
    ++shared_->counts.cached;
    return ready(std::move(*found));
  }
  if (const auto found = shared_->asked.find(fen); found != shared_->asked.end())
    return found->second;
  auto task = std::make_unique<Task>();
  task->fen = fen;
  std::shared_future<EngineAnalysis> future = task->promise.get_future().share();
  shared_->asked.emplace(fen, future);
  shared_->queue.push_back(std::move(task));
  shared_->changed.notify_one();
  return future;
}

EngineCounts EnginePool::counts() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->counts;
}

const std::string& EnginePool::engine_name() const { return shared_->name; }

std::vector<std::string> EnginePool::take_notices() { return shared_->cache->take_notices(); }

}  // namespace fullbore::chess
