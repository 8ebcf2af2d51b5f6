#include "fullbore/runtime/replay.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace fullbore {
namespace {

// A barrier of the team costs a microsecond or so: launches below this are left to worker 0.
constexpr double kParallelNanoseconds = 4000;
// What one core copies in a nanosecond.
constexpr double kCopiedBytes = 8;
// Of each worker in one run, 24 bytes each: a loop of millions of trips is recorded in part.
constexpr int64_t kMostEvents = 1 << 20;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Replay::Replay(const Plan& plan, std::vector<void*>& pointers, Team& team)
    : plan_(plan), pointers_(pointers), team_(team) {
  launches_ = prepare(plan.steps, 1);
  arguments_.assign(static_cast<size_t>(team.workers()), std::vector<void*>(most_arguments_ + 1));
}

std::vector<Replay::Launch> Replay::prepare(const std::vector<Step>& steps, int64_t times) {
  std::vector<Launch> launches;
  for (const Step& step : steps) {
    Launch launch;
    launch.step = &step;
    launch.index = launch_count_++;
    launch.waits = step.waits;
    most_events_ = std::min(most_events_ + times, kMostEvents);
    most_arguments_ = std::max(most_arguments_, step.buffers.size());
    switch (step.kind) {
      case Step::Kind::kernel:
        launch.kernel = plan_.kernels[static_cast<size_t>(step.kernel)].get();
        launch.items = launch.kernel->items();
        launch.nanoseconds = launch.kernel->nanoseconds();
        break;
      case Step::Kind::copy:
        launch.items = plan_.buffers[static_cast<size_t>(step.buffers[1])].bytes;
        launch.nanoseconds = static_cast<double>(launch.items) / kCopiedBytes;
        break;
      case Step::Kind::loop:
        launch.body =
            prepare(step.loop->body,
                    std::min(times * std::min(step.loop->trips, kMostEvents), kMostEvents));
        for (const Launch& inner : launch.body) launch.parallel |= inner.wave_spread;
        break;
    }
    if (step.kind != Step::Kind::loop)
      launch.parallel =
          team_.workers() > 1 && launch.items > 1 && launch.nanoseconds > kParallelNanoseconds;
    launches.push_back(std::move(launch));
  }
  for (size_t begin = 0, end = 1; begin < launches.size(); begin = end++) {
    while (end < launches.size() && !launches[end].waits) ++end;
    share_wave(std::span(launches).subspan(begin, end - begin));
  }
  return launches;
}

// Launches that are not worth spreading go to whoever has least to do; a wave that is not worth a
// barrier in all, to worker 0.
void Replay::share_wave(std::span<Launch> wave) const {
  double alone = 0;
  for (const Launch& launch : wave)
    if (!launch.parallel) alone += launch.nanoseconds;
  bool spread = std::ranges::any_of(wave, &Launch::parallel);
  if (team_.workers() > 1 && wave.size() > 1 && alone > kParallelNanoseconds) {
    std::vector<double> load(static_cast<size_t>(team_.workers()), 0);
    for (Launch& launch : wave) {
      if (launch.parallel) continue;
      const auto least = std::ranges::min_element(load);
      launch.worker = static_cast<int>(least - load.begin());
      spread |= launch.worker != 0;
      *least += launch.nanoseconds;
    }
  }
  for (Launch& launch : wave) launch.wave_spread = spread;
}

void Replay::set_profiling(bool on) {
  logs_.clear();
  if (!on) return;
  logs_.resize(static_cast<size_t>(team_.workers()));
  for (EventLog& log : logs_) log.events.resize(static_cast<size_t>(most_events_));
}

std::vector<WorkerEvents> Replay::events() const {
  std::vector<WorkerEvents> events;
  for (const EventLog& log : logs_)
    events.push_back({std::span(log.events).first(log.count), log.dropped});
  return events;
}

void Replay::run() {
  for (EventLog& log : logs_) {
    log.count = 0;
    log.dropped = 0;
  }
  team_.run(
      [](void* context, int worker) {
        auto& self = *static_cast<Replay*>(context);
        Walk walk;
        walk.worker = worker;
        walk.arguments = self.arguments_[static_cast<size_t>(worker)].data();
        if (!self.logs_.empty()) walk.log = &self.logs_[static_cast<size_t>(worker)];
        self.walk(self.launches_, walk);
      },
      this);
}

void Replay::order(Walk& walk, bool spread) {
  if (!walk.solo && (spread || walk.last_spread)) team_.barrier(walk.worker);
  walk.last_spread = spread;
}

void Replay::walk(const std::vector<Launch>& launches, Walk& walk) {
  for (const Launch& next : launches) {
    if (next.waits) order(walk, next.wave_spread);
    if (!next.parallel && next.worker != walk.worker) continue;
    if (walk.log == nullptr)
      launch(next, walk);
    else
      timed_launch(next, walk);
  }
}

// The place is taken before the launch, so that a loop stands before what it holds.
void Replay::timed_launch(const Launch& next, Walk& walk) {
  EventLog& log = *walk.log;
  if (log.count == log.events.size()) {
    ++log.dropped;
    launch(next, walk);
    return;
  }
  LaunchEvent& event = log.events[log.count++];
  event.launch = next.index;
  event.begin_ns = now_ns();
  launch(next, walk);
  event.end_ns = now_ns();
}

void Replay::launch(const Launch& launch, Walk& walk) {
  if (launch.step->kind == Step::Kind::loop) {
    const bool solo = walk.solo;
    walk.solo |= !launch.parallel;
    run_loop(launch, walk);
    walk.solo = solo;
    return;
  }
  int64_t begin = 0;
  int64_t end = launch.items;
  if (launch.parallel && !walk.solo) {
    begin = launch.items * walk.worker / team_.workers();
    end = launch.items * (walk.worker + 1) / team_.workers();
  }
  if (begin >= end) return;
  const std::vector<int>& buffers = launch.step->buffers;
  if (launch.step->kind == Step::Kind::copy) {
    std::memcpy(pointer(buffers[1]) + begin, pointer(buffers[0]) + begin,
                static_cast<size_t>(end - begin));
    return;
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    walk.arguments[i] = pointers_[static_cast<size_t>(buffers[i])];
  launch.kernel->run(walk.arguments, begin, end, walk.worker);
}

void Replay::begin_trip(const LoopPlan& loop, int64_t index) {
  std::memcpy(pointer(loop.index), &index, sizeof(index));
  for (int slice : loop.slices) {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(slice)];
    pointers_[static_cast<size_t>(slice)] = pointer(buffer.base) + index * buffer.stride;
  }
}

// Called by every worker, or by worker 0 alone (walk.solo). Between two barriers either one worker
// writes shared things (index, row pointers, carried values) or all read them.
void Replay::run_loop(const Launch& launch, Walk& walk) {
  const LoopPlan& loop = *launch.step->loop;
  int64_t trips = loop.trips;
  if (loop.count >= 0) {
    int64_t count = 0;
    std::memcpy(&count, pointer(loop.count), sizeof(count));
    trips = std::clamp<int64_t>(count, 0, trips);
  }
  // The launch itself came after a barrier if it is parallel; what follows on worker 0 is ordered
  // as if it were a launch of one worker.
  walk.last_spread = false;
  if (walk.worker == 0)
    for (int buffer : loop.cleared)
      std::memset(pointer(buffer), 0,
                  static_cast<size_t>(plan_.buffers[static_cast<size_t>(buffer)].bytes));
  int64_t made = 0;
  while (made < trips) {
    order(walk, false);
    if (walk.worker == 0) begin_trip(loop, loop.reverse ? trips - 1 - made : made);
    this->walk(launch.body, walk);
    ++made;
    order(walk, false);
    if (walk.worker == 0)
      for (const LoopPlan::Carry& carry : loop.carries)
        std::memcpy(pointer(carry.to), pointer(carry.from),
                    static_cast<size_t>(plan_.buffers[static_cast<size_t>(carry.to)].bytes));
    if (loop.stop < 0) continue;
    if (!walk.solo) team_.barrier(walk.worker);
    const bool stop = *pointer(loop.stop) != 0;
    if (!walk.solo) team_.barrier(walk.worker);  // nobody overwrites the flag before all have read
    if (stop) break;
  }
  order(walk, false);
  if (walk.worker == 0 && loop.executed >= 0)
    std::memcpy(pointer(loop.executed), &made, sizeof(made));
}

}  // namespace fullbore
