#include "fullbore/lab/ablation/turn_group.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "fullbore/base/philox.h"
#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/train/turns.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A run of the group while it lives.
class Member {
 public:
  /// `core`: where the turn before ended, of whatever member.
  Member(const TrainingRequest& request, const TurnOptions& options, const StopRequest& stop,
         TurnRun& run, int& core)
      : request_(request), options_(options), stop_(stop), run_(run), core_(core) {
    TurnSockets sockets = make_turn_sockets();
    ChildCommand command = training_command(request);
    command.descriptor = sockets.running.get();
    command.environment.emplace_back(kTurnsVariable, std::to_string(sockets.running.get()));
    child_.emplace(command);
    socket_ = std::move(sockets.granting);
  }  // from here on the run alone has its end of the socket, and so its end is seen at ours

  bool lives() const { return child_.has_value(); }

  /// Until it is ready for its first step, and that.
  void begin() {
    const Clock::time_point start = Clock::now();
    if (!take_report(options_.start_seconds)) return;
    run_.ready_seconds = seconds_since(start);
    make_turn(1);
  }

  /// One turn; the last one lasts until the run has ended, so that what it does then is in nobody else's time.
  void make_turn(int64_t steps) {
    const Clock::time_point start = Clock::now();
    const size_t made = run_.step_seconds.size();
    const double samples = run_.samples;
    const double joules = options_.joules ? options_.joules() : 0;
    if (!grant_turn(socket_, steps, core_)) end(child_->wait(options_.turn_limit_seconds, stop_));
    if (!lives() || !take_report(options_.turn_limit_seconds)) return;
    count_joules(joules, samples, seconds_since(start), made);
    while (lives() && std::ssize(run_.step_seconds) >= options_.steps)
      take_report(options_.turn_limit_seconds);
    if (lives()) return;
    run_.finish_seconds = seconds_since(start) - step_seconds_from(made);
  }

  void stop() {
    if (lives()) end(child_->stop());
  }
  /// Time is out.
  void give_up() {
    if (!lives()) return;
    ChildEnd killed = child_->stop();
    killed.stopped = false;
    killed.timed_out = true;
    end(killed);
  }

 private:
  double step_seconds_from(size_t step) const {
    return std::accumulate(run_.step_seconds.begin() + static_cast<int64_t>(step),
                           run_.step_seconds.end(), 0.0);
  }

  /// `before`, `samples`, `made`: as they were before the turn. A turn that took longer than its steps had an evaluation.
  void count_joules(double before, double samples, double seconds, size_t made) {
    constexpr double kMostBeside = 1.1;
    if (!options_.joules || seconds > kMostBeside * step_seconds_from(made)) return;
    const double taken = options_.joules() - before;
    if (!std::isfinite(taken)) return;
    run_.joules += taken;
    run_.joules_samples += run_.samples - samples;
  }

  /// Waits for its next report. False: it has ended, or was made to.
  bool take_report(double limit_seconds) {
    const Clock::time_point start = Clock::now();
    TurnReport report;
    for (;;) {
      constexpr int kSliceMilliseconds = 100;
      const TurnAnswer answer = read_turn(socket_, kSliceMilliseconds, report);
      if (answer == TurnAnswer::report) break;
      if (answer == TurnAnswer::gone) return end(child_->wait(0, stop_));
      if (stop_ && stop_()) return end(child_->stop());
      if (seconds_since(start) <= limit_seconds) continue;
      give_up();
      return false;
    }
    core_ = report.core;
    const auto made = static_cast<int64_t>(run_.step_seconds.size());
    if (!report.step_seconds.empty()) run_.turns.push_back(made);
    run_.step_seconds.insert(run_.step_seconds.end(), report.step_seconds.begin(),
                             report.step_seconds.end());
    run_.samples += report.samples;
    run_.resident_peak_bytes = std::max(run_.resident_peak_bytes, report.resident_peak_bytes);
    return true;
  }

  bool end(const ChildEnd& end) {
    run_.result = training_result(request_, end);
    child_.reset();
    return false;
  }

  const TrainingRequest& request_;
  const TurnOptions& options_;
  const StopRequest& stop_;
  TurnRun& run_;
  int& core_;
  std::optional<ChildProcess> child_;
  Descriptor socket_;
};

/// Where there are steps for them: what neighbours on a machine do changes within a second, and hits alike only what is made close
/// together.
constexpr int64_t kLeastTurns = 64;

int64_t steps_per_turn(std::span<const TurnRun> runs, const TurnOptions& options) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const TurnRun& run : runs)
    if (run.step_seconds.size() > 1)
      fastest = std::min(fastest, median(std::span(run.step_seconds).subspan(1)));
  if (!std::isfinite(fastest) || fastest <= 0) return 1;
  const double most = static_cast<double>(std::min(kMostStepsOfTurn, options.steps / kLeastTurns));
  return std::max<int64_t>(1, std::llround(std::min(options.turn_seconds / fastest, most)));
}

std::vector<size_t> drawn_order(size_t count, PhiloxStream& draws) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t left = count; left > 1; --left) std::swap(order[left - 1], order[draws.below(left)]);
  return order;
}

/// Steps [first, end) of each turn that counts.
std::vector<std::pair<size_t, size_t>> counted_steps(size_t steps, std::span<const int64_t> turns,
                                                     size_t warm_up) {
  std::vector<std::pair<size_t, size_t>> spans;
  constexpr size_t kStepsWithCold = 3;
  for (size_t turn = warm_up; turn < turns.size(); ++turn) {
    const auto first = static_cast<size_t>(turns[turn]);
    const size_t end = turn + 1 < turns.size() ? static_cast<size_t>(turns[turn + 1]) : steps;
    if (end > first) spans.emplace_back(first + (end - first >= kStepsWithCold ? 1 : 0), end);
  }
  return spans;
}

}  // namespace

double TurnRun::samples_per_step() const {
  return step_seconds.empty() ? 0 : samples / static_cast<double>(step_seconds.size());
}

std::vector<TurnRun> run_in_turns(std::span<const TrainingRequest> requests,
                                  const TurnOptions& options, const StopRequest& stop,
                                  const std::function<void(int64_t steps)>& progress) {
  const Clock::time_point begin = Clock::now();
  std::vector<TurnRun> runs(requests.size());
  // A core whose neighbour is busy, or a slower one, would be some runs' alone for seconds: the system leaves those that
  // wake where they were.
  int core = -1;
  std::vector<std::unique_ptr<Member>> members(requests.size());
  const auto tell = [&] {
    int64_t steps = 0;
    for (const TurnRun& run : runs) steps += std::ssize(run.step_seconds);
    if (progress) progress(steps);
  };
  // One after the other: what a start costs is no other run's time.
  for (size_t place = 0; place < requests.size(); ++place) {
    const size_t i = options.last_first ? requests.size() - 1 - place : place;
    members[i] = std::make_unique<Member>(requests[i], options, stop, runs[i], core);
    members[i]->begin();
    tell();
  }
  // A short round tells how long steps take once caches are filled.
  constexpr int64_t kTrialSteps = 4;
  int64_t steps = std::min(kTrialSteps, options.steps - 1);
  PhiloxStream draws(options.seed);
  std::vector<size_t> order;
  const auto alive = [&] {
    return std::ranges::any_of(members, [](const auto& member) { return member->lives(); });
  };
  for (int64_t round = 0; alive(); ++round) {
    if (round % 2 == 0)
      order = drawn_order(members.size(), draws);
    else
      std::ranges::reverse(order);
    for (const size_t next : order) {
      if (stop && stop())
        for (const auto& member : members) member->stop();
      if (members[next]->lives()) members[next]->make_turn(std::max<int64_t>(steps, 1));
      tell();
    }
    if (seconds_since(begin) > options.seconds)
      for (const auto& member : members) member->give_up();
    if (round == 0) steps = steps_per_turn(runs, options);
  }
  return runs;
}

std::vector<double> log_time_ratios(std::span<const double> a, std::span<const int64_t> turns,
                                    std::span<const double> b, size_t warm_up) {
  std::vector<double> ratios;
  std::vector<double> of_turn;
  for (const auto& [first, end] : counted_steps(a.size(), turns, warm_up)) {
    of_turn.clear();
    for (size_t step = first; step < std::min(end, b.size()); ++step)
      of_turn.push_back(std::log(b[step] / a[step]));
    if (!of_turn.empty()) ratios.push_back(median(of_turn));
  }
  return ratios;
}

std::vector<double> turn_medians(std::span<const double> seconds, std::span<const int64_t> turns,
                                 size_t warm_up) {
  std::vector<double> medians;
  for (const auto& [first, end] : counted_steps(seconds.size(), turns, warm_up))
    medians.push_back(median(seconds.subspan(first, end - first)));
  return medians;
}

}  // namespace fullbore
