/// What saving in the background costs the training loop.
///
///     bench_background_save [PARAMETERS_MILLIONS [FOLDER [SECONDS [ROUNDS]]]]
///
/// The loop replays the training step of configs/default.yaml (on a text that it makes up) on all
/// processors. Beside it lies a State of PARAMETERS_MILLIONS (124) million parameters and two moments
/// each, which RunSaver saves in FOLDER (the current one): 1.5 GB a save. Windows of SECONDS (6), longer
/// than a save, take turns: without a save, with one at its beginning, without, ... ROUNDS (20) times.
/// What a save costs is the time in which the loop would have made the steps that a window with a save
/// lacks beside its two neighbours: seconds, whatever the interval between saves. Its median, with a
/// confidence interval, is told as a share of a minute.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/data/loader.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/sample_statistics.h"
#include "fullbore/runtime/program.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/run_saver.h"
#include "fullbore/train/step_function.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of all threads.
double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

State large_state(int64_t parameters) {
  std::vector<StateEntry> entries;
  for (const auto& [name, role] :
       {std::pair{"weight", Role::parameter}, std::pair{"weight.moment1", Role::moment},
        std::pair{"weight.moment2", Role::moment}})
    entries.push_back({name, role, {DType::f32, {parameters}}});
  State state(entries, open_device("cpu"));
  PhiloxStream draws(1);
  for (size_t entry = 0; entry < state.entries().size(); ++entry) {
    state.produce(
        static_cast<int>(entry), Pieces::in_order, [&](int64_t, std::span<std::byte> piece) {
          for (size_t i = 0; i + 8 <= piece.size(); i += 4096) {  // some bits in every page
            const uint64_t bits = draws.below(uint64_t{1} << 62);
            std::memcpy(&piece[i], &bits, sizeof bits);
          }
        });
  }
  return state;
}

std::string made_up_text(const std::string& folder) {
  std::string path = folder + "/text.txt";
  std::ofstream file(path);
  PhiloxStream draws(2);
  for (int i = 0; i < 300'000; ++i) file << static_cast<char>('a' + draws.below(26));
  return path;
}

class Loop {
 public:
  explicit Loop(const Config& config)
      : job_(training_job(config, open_text(config))),
        step_(trace_training_step(job_.loss, job_.training->fields(), job_.options.optimizer)),
        state_(initial_state(step_, 1, open_device("cpu", job_.options.workers))),
        program_(Program::compile(step_.graph, state_, job_.options.compile)),
        loader_(job_.training, {.workers = 1, .prefetch = 4}) {}

  int workers() const { return state_.device().facts().workers; }
  /// Steps per second over so many seconds from `start` on.
  double run(Clock::time_point start, double seconds) {
    int64_t steps = 0;
    for (; seconds_since(start) < seconds; ++steps) program_.run(loader_.next());
    return static_cast<double>(steps) / seconds_since(start);
  }

 private:
  TrainingJob job_;
  TracedStep step_;
  State state_;
  Program program_;
  Loader loader_;
};

/// Saves while nothing else runs. The first one, which meets the snapshot's memory, is not counted.
void save_alone(RunSaver& saver, int workers) {
  std::vector<double> wall;
  std::vector<double> stall;
  std::vector<double> processor;
  for (int save = 0; save < 6; ++save) {
    const Clock::time_point start = Clock::now();
    const double processor_before = processor_seconds();
    const double stall_before = saver.stall_seconds();
    saver.save({}, false, {});
    saver.finish();
    if (save == 0) continue;
    wall.push_back(seconds_since(start));
    stall.push_back(saver.stall_seconds() - stall_before);
    processor.push_back(processor_seconds() - processor_before);
  }
  fmt::print(
      "alone: {:.2f} s, of which {:.0f} ms hold the loop up; {:.2f} s of processor time: {:.2f} % "
      "of {} processors for a minute\n",
      median(wall), median(stall) * 1e3, median(processor),
      100 * median(processor) / (60 * workers), workers);
}

int measure(int64_t parameters, const std::string& parent, double window, int rounds) {
  const std::string folder = parent + "/background_save";
  std::filesystem::create_directories(folder);
  Loop loop(
      parse_config("{}", "bench", std::vector<std::string>{"data.path=" + made_up_text(folder)}));
  const State state = large_state(parameters);
  CheckpointStore store(folder, 1);
  RunSaver saver(store, state, {.retention = 1});
  save_alone(saver, loop.workers());
  loop.run(Clock::now(), 2);
  double before = loop.run(Clock::now(), window);
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    RunRecord record;
    record.step = round + 1;
    saver.save(record, false, {});
    const double with = loop.run(start, window);
    saver.finish();
    const double after = loop.run(Clock::now(), window);
    seconds.push_back(window * (1 - with / (0.5 * (before + after))));
    fmt::print("{:.2f} {:.2f} {:.2f} steps/s without, with, without a save: {:+.2f} s\n", before,
               with, after, seconds.back());
    before = after;
  }
  const ConfidenceInterval interval = bootstrap_median(seconds);
  fmt::print(
      "a save of {} bytes costs the loop {:.2f} s (95 % confidence {:.2f} to {:.2f}): {:.2f} % "
      "({:.2f} to "
      "{:.2f}) at one a minute\n",
      state.bytes(), median(seconds), interval.low, interval.high, median(seconds) / 0.6,
      interval.low / 0.6, interval.high / 0.6);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 124.439808;
  return fullbore::measure(static_cast<int64_t>(millions * 1e6), argc > 2 ? argv[2] : ".",
                           argc > 3 ? std::atof(argv[3]) : 6, argc > 4 ? std::atoi(argv[4]) : 20);
}
