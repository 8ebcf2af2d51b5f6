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
    : plan_(plan), pointers_(pointers), team_(team), all_(team.workers()) {
  launches_ = prepare(plan.steps, 1, team.workers());
  arguments_.assign(static_cast<size_t>(team.workers()), std::vector<void*>(most_arguments_ + 1));
}

const Replay::ThreadGroups& Replay::thread_groups(int count) {
  ThreadGroups& thread_groups = thread_groups_[count];
  while (static_cast<int>(thread_groups.size()) < count) {
    const auto next = static_cast<int>(thread_groups.size());
    thread_groups.push_back(
        std::make_unique<ThreadGroup>(first_worker(next + 1, count, team_.workers()) -
                                      first_worker(next, count, team_.workers())));
    thread_groups.back()->pointers.resize(pointers_.size());
  }
  return thread_groups;
}

std::vector<Replay::Launch> Replay::prepare(const std::vector<Step>& steps, int64_t times,
                                            int workers) {
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
      case Step::Kind::loop: {
        const int count = thread_group_count(plan_, *step.loop);
        if (count > 1) {
          launch.parallel = true;
          launch.thread_groups = &thread_groups(count);
          for (size_t i = 0; i < plan_.buffers.size(); ++i)
            if (plan_.buffers[i].space == Space::thread_group &&
                plan_.buffers[i].base == step.loop->memory)
              launch.own.push_back(static_cast<int>(i));
        }
        launch.body = prepare(
            step.loop->body, std::min(times * std::min(step.loop->trips, kMostEvents), kMostEvents),
            (workers + count - 1) / count);
        for (const Launch& inner : launch.body) launch.parallel |= inner.wave_spread;
        break;
      }
    }
    if (step.kind != Step::Kind::loop)
      launch.parallel =
          workers > 1 && launch.items > 1 && launch.nanoseconds > kParallelNanoseconds;
    launches.push_back(std::move(launch));
  }
  for (size_t begin = 0, end = 1; begin < launches.size(); begin = end++) {
    while (end < launches.size() && !launches[end].waits) ++end;
    share_wave(std::span(launches).subspan(begin, end - begin), workers);
  }
  return launches;
}

// Launches that are not worth spreading go to whoever has least to do; a wave that is not worth a
// barrier in all, to worker 0.
void Replay::share_wave(std::span<Launch> wave, int workers) const {
  double alone = 0;
  for (const Launch& launch : wave)
    if (!launch.parallel) alone += launch.nanoseconds;
  bool spread = std::ranges::any_of(wave, &Launch::parallel);
  if (workers > 1 && wave.size() > 1 && alone > kParallelNanoseconds) {
    std::vector<double> load(static_cast<size_t>(workers), 0);
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
        walk.worker = walk.rank = worker;
        walk.thread_group = &self.all_;
        walk.pointers = self.pointers_.data();
        walk.arguments = self.arguments_[static_cast<size_t>(worker)].data();
        if (!self.logs_.empty()) walk.log = &self.logs_[static_cast<size_t>(worker)];
        self.walk(self.launches_, walk);
      },
      this);
}

void Replay::order(Walk& walk, bool spread) {
  if (!walk.solo && (spread || walk.last_spread)) walk.thread_group->barrier.wait();
  walk.last_spread = spread;
}

void Replay::walk(const std::vector<Launch>& launches, Walk& walk) {
  for (const Launch& next : launches) {
    if (next.waits) order(walk, next.wave_spread);
    // A thread group may be smaller than others, which launches were shared out for.
    if (!next.parallel && next.worker % walk.thread_group->workers != walk.rank) continue;
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
    if (launch.thread_groups) return run_thread_groups(launch, walk);
    const bool solo = walk.solo;
    walk.solo |= !launch.parallel;
    run_loop(launch, walk);
    walk.solo = solo;
    return;
  }
  int64_t begin = 0;
  int64_t end = launch.items;
  if (launch.parallel && !walk.solo) {
    begin = launch.items * walk.rank / walk.thread_group->workers;
    end = launch.items * (walk.rank + 1) / walk.thread_group->workers;
  }
  if (begin >= end) return;
  const std::vector<int>& buffers = launch.step->buffers;
  if (launch.step->kind == Step::Kind::copy) {
    std::memcpy(walk.pointer(buffers[1]) + begin, walk.pointer(buffers[0]) + begin,
                static_cast<size_t>(end - begin));
    return;
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    walk.arguments[i] = walk.pointers[static_cast<size_t>(buffers[i])];
  launch.kernel->run(walk.arguments, begin, end, walk.rank);
}

void Replay::begin_trip(const LoopPlan& loop, int64_t index, const Walk& walk) {
  std::memcpy(walk.pointer(loop.index), &index, sizeof(index));
  for (int slice : loop.slices) {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(slice)];
    walk.pointers[static_cast<size_t>(slice)] = walk.pointer(buffer.base) + index * buffer.stride;
  }
}

// Called by every worker of the team, behind a barrier; the next launch comes behind another one.
void Replay::run_thread_groups(const Launch& launch, const Walk& walk) {
  const LoopPlan& loop = *launch.step->loop;
  const Buffer& memory = plan_.buffers[static_cast<size_t>(loop.memory)];
  const int number = thread_group_of(walk.worker, memory.thread_groups, team_.workers());
  Walk own = walk;
  own.thread_group = (*launch.thread_groups)[static_cast<size_t>(number)].get();
  own.rank = walk.worker - first_worker(number, memory.thread_groups, team_.workers());
  own.pointers = own.thread_group->pointers.data();
  own.last_spread = false;
  if (own.rank == 0) {
    std::memcpy(own.pointers, pointers_.data(), pointers_.size() * sizeof(void*));
    for (const int buffer : launch.own)
      own.pointers[static_cast<size_t>(buffer)] = own.pointer(buffer) + number * memory.stride;
  }
  for (int64_t trip = number; trip < loop.trips; trip += memory.thread_groups) {
    order(own, false);
    if (own.rank == 0) begin_trip(loop, loop.reverse ? loop.trips - 1 - trip : trip, own);
    this->walk(launch.body, own);
  }
}

// Called by every worker of a thread group, or by the first alone (walk.solo). Between two barriers either one worker
// writes shared things (index, row pointers, carried values) or all read them.
void Replay::run_loop(const Launch& launch, Walk& walk) {
  const LoopPlan& loop = *launch.step->loop;
  int64_t trips = loop.trips;
  if (loop.count >= 0) {
    int64_t count = 0;
    std::memcpy(&count, walk.pointer(loop.count), sizeof(count));
    trips = std::clamp<int64_t>(count, 0, trips);
  }
  // The launch itself came after a barrier if it is parallel; what follows on worker 0 is ordered
  // as if it were a launch of one worker.
  walk.last_spread = false;
  if (walk.rank == 0)
    for (int buffer : loop.cleared)
      std::memset(walk.pointer(buffer), 0,
                  static_cast<size_t>(plan_.buffers[static_cast<size_t>(buffer)].bytes));
  int64_t made = 0;
  while (made < trips) {
    order(walk, false);
    if (walk.rank == 0) begin_trip(loop, loop.reverse ? trips - 1 - made : made, walk);
    this->walk(launch.body, walk);
    ++made;
    order(walk, false);
    if (walk.rank == 0)
      for (const LoopPlan::Carry& carry : loop.carries)
        std::memcpy(walk.pointer(carry.to), walk.pointer(carry.from),
                    static_cast<size_t>(plan_.buffers[static_cast<size_t>(carry.to)].bytes));
    if (loop.stop < 0) continue;
    if (!walk.solo) walk.thread_group->barrier.wait();
    const bool stop = *walk.pointer(loop.stop) != 0;
    if (!walk.solo)
      walk.thread_group->barrier.wait();  // nobody overwrites the flag before all have read
    if (stop) break;
  }
  order(walk, false);
  if (walk.rank == 0 && loop.executed >= 0)
    std::memcpy(walk.pointer(loop.executed), &made, sizeof(made));
}

}  // namespace fullbore
