#include "fullbore/device/cpu/executor/thread_replay.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/run_delay.h"
#include "fullbore/device/thread_groups.h"

namespace fullbore::cpu {
namespace {

// A barrier of the pool costs a microsecond or so: launches below this are left to worker 0.
constexpr double kParallelNanoseconds = 4000;
// What one core copies in a nanosecond.
constexpr double kCopiedBytes = 8;
// The id of what is no entry of the launch list.
constexpr int32_t kNoEvent = -1;
// Of each worker in one run, 24 bytes each: a loop of millions of iterations is recorded in part.
constexpr int64_t kMostEvents = 1 << 20;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ThreadReplay::ThreadReplay(const std::vector<RecordedLaunch>& recorded, ThreadPool& pool)
    : pool_(pool), all_(pool.workers()) {
  std::vector<const LoopRange*> around;
  launches_ = prepare(recorded, around, 1, pool.workers());
  scratch_.assign(static_cast<size_t>(pool.workers()),
                  {std::vector<int64_t>(deepest_ + 1), std::vector<int64_t>(deepest_ + 1),
                   std::vector<int64_t>(loops_.size()), std::vector<void*>(most_arguments_ + 1)});
}

// Of a thread group the first worker counts, so that its own are the iterations of a parallel loop.
int64_t ThreadReplay::iterations_made(int loop) const {
  const size_t number = loops_.at(loop);
  int64_t sum = 0;
  for (const Scratch& worker : scratch_) sum += worker.totals[number];
  return sum;
}

const ThreadReplay::ThreadGroups& ThreadReplay::thread_groups(int count) {
  ThreadGroups& groups = thread_groups_[count];
  while (static_cast<int>(groups.size()) < count) {
    const auto next = static_cast<int>(groups.size());
    groups.push_back(std::make_unique<ThreadGroup>(first_worker(next + 1, count, pool_.workers()) -
                                                   first_worker(next, count, pool_.workers())));
  }
  return groups;
}

ThreadReplay::Place ThreadReplay::place_of(const LaunchOperand& operand,
                                           std::span<const LoopRange* const> around) {
  Place place;
  place.base = reinterpret_cast<char*>(operand.base.value);
  place.batch_input = operand.batch_input;
  for (size_t i = 0; i < operand.strides.size(); ++i)
    if (operand.strides[i] != 0) place.moves.push_back({i, operand.strides[i]});
  place.exchanged_by = operand.exchanged_by;
  for (const Address base : operand.exchanged_bases)
    place.exchanged_bases.push_back(reinterpret_cast<char*>(base.value));
  for (const LoopRange* range : around)
    if (operand.batch_input < 0 && range->groups > 1 && operand.base >= range->group_memory &&
        operand.base < range->group_memory + range->group_stride)
      place.group_stride = range->group_stride;
  return place;
}

std::optional<ThreadReplay::Place> ThreadReplay::place_of(
    const std::optional<LaunchOperand>& operand, std::span<const LoopRange* const> around) {
  if (!operand) return std::nullopt;
  return place_of(*operand, around);
}

ThreadReplay::PreparedLaunch ThreadReplay::prepare_loop(const RecordedLaunch& recorded,
                                                        std::vector<const LoopRange*>& around,
                                                        int64_t times, int workers) {
  auto loop = std::make_shared<Loop>();
  loop->range = recorded.loop->range;
  loop->depth = around.size();
  loop->number = loops_.size();
  loops_.emplace(recorded.id, loop->number);
  const LoopRange& range = loop->range;
  PreparedLaunch launch{.kind = recorded.kind, .id = recorded.id, .waits = recorded.waits};
  if (range.groups > 1) {
    launch.parallel = true;
    loop->thread_groups = &thread_groups(range.groups);
  }
  loop->count = place_of(range.count, around);
  loop->executed = place_of(range.executed, around);
  loop->exchanged = prepare_copies(recorded.loop->exchanges, around, workers);
  double clearing = 0;
  for (const RecordedRows& rows : recorded.loop->cleared) {
    loop->cleared.push_back({place_of(rows.rows, around), rows.row_bytes});
    clearing += static_cast<double>(rows.row_bytes * range.iterations) / kCopiedBytes;
  }
  loop->shares_clearing = workers > 1 && clearing > kParallelNanoseconds;
  around.push_back(&range);
  deepest_ = std::max(deepest_, around.size());
  loop->stop = place_of(range.stop, around);
  loop->index = place_of(range.index, around);
  loop->body = prepare(recorded.loop->body, around,
                       std::min(times * std::min(range.iterations, kMostEvents), kMostEvents),
                       (workers + range.groups - 1) / range.groups);
  for (PreparedLaunch& carry : prepare_copies(recorded.loop->carries, around, workers))
    loop->body.push_back(std::move(carry));
  around.pop_back();
  for (const PreparedLaunch& inner : loop->body) launch.parallel |= inner.group_spread;
  for (const PreparedLaunch& copy : loop->exchanged) launch.parallel |= copy.group_spread;
  launch.parallel |= loop->shares_clearing;
  launch.loop = std::move(loop);
  return launch;
}

// Side by side: none writes what another reads. They are no entries of the launch list.
std::vector<ThreadReplay::PreparedLaunch> ThreadReplay::prepare_copies(
    std::span<const RecordedCarry> copies, std::span<const LoopRange* const> around, int workers) {
  std::vector<PreparedLaunch> launches;
  for (const RecordedCarry& copy : copies) {
    launches.push_back(prepare_launch({.kind = RecordedLaunch::Kind::copy,
                                       .id = kNoEvent,
                                       .operands = {copy.from, copy.to},
                                       .bytes = copy.bytes,
                                       .waits = launches.empty()},
                                      around, workers));
  }
  share(launches, workers);
  return launches;
}

ThreadReplay::PreparedLaunch ThreadReplay::prepare_launch(const RecordedLaunch& recorded,
                                                          std::span<const LoopRange* const> around,
                                                          int workers) {
  PreparedLaunch launch{.kind = recorded.kind, .id = recorded.id, .waits = recorded.waits};
  most_arguments_ = std::max(most_arguments_, recorded.operands.size());
  for (const LaunchOperand& operand : recorded.operands) {
    Place place = place_of(operand, around);
    launch.arguments.push_back(place.base);
    if (!place.is_fixed())
      launch.moving.emplace_back(launch.arguments.size() - 1, std::move(place));
  }
  if (recorded.kind == RecordedLaunch::Kind::kernel) {
    launch.kernel = dynamic_cast<const CpuKernel*>(recorded.kernel);
    FB_CHECK(launch.kernel != nullptr, "'{}' is no kernel of the CPU",
             recorded.kernel->description());
    launch.items = launch.kernel->items();
    launch.nanoseconds = launch.kernel->nanoseconds();
  } else {
    launch.items = recorded.bytes;
    launch.nanoseconds = static_cast<double>(recorded.bytes) / kCopiedBytes;
  }
  launch.parallel = workers > 1 && launch.items > 1 && launch.nanoseconds > kParallelNanoseconds;
  return launch;
}

std::vector<ThreadReplay::PreparedLaunch> ThreadReplay::prepare(
    const std::vector<RecordedLaunch>& recorded, std::vector<const LoopRange*>& around,
    int64_t times, int workers) {
  std::vector<PreparedLaunch> launches;
  for (const RecordedLaunch& each : recorded) {
    most_events_ = std::min(most_events_ + times, kMostEvents);
    if (each.kind == RecordedLaunch::Kind::loop) {
      launches.push_back(prepare_loop(each, around, times, workers));
      continue;
    }
    launches.push_back(prepare_launch(each, around, workers));
  }
  for (size_t begin = 0, end = 1; begin < launches.size(); begin = end++) {
    while (end < launches.size() && !launches[end].waits) ++end;
    share(std::span(launches).subspan(begin, end - begin), workers);
  }
  return launches;
}

// Launches that are not worth spreading go to whoever has least to do; launches side by side that are not worth a
// barrier in all, to worker 0.
void ThreadReplay::share(std::span<PreparedLaunch> side_by_side, int workers) const {
  double alone = 0;
  for (const PreparedLaunch& launch : side_by_side)
    if (!launch.parallel) alone += launch.nanoseconds;
  bool spread = std::ranges::any_of(side_by_side, &PreparedLaunch::parallel);
  if (workers > 1 && side_by_side.size() > 1 && alone > kParallelNanoseconds) {
    std::vector<double> load(static_cast<size_t>(workers), 0);
    for (PreparedLaunch& launch : side_by_side) {
      if (launch.parallel) continue;
      const auto least = std::ranges::min_element(load);
      launch.worker = static_cast<int>(least - load.begin());
      spread |= launch.worker != 0;
      *least += launch.nanoseconds;
    }
  }
  for (PreparedLaunch& launch : side_by_side) launch.group_spread = spread;
}

void ThreadReplay::set_profiling(bool on) {
  logs_.clear();
  if (!on) return;
  logs_.resize(static_cast<size_t>(pool_.workers()));
  for (EventLog& log : logs_) log.events.resize(static_cast<size_t>(most_events_));
}

std::vector<LaneEvents> ThreadReplay::events() const {
  std::vector<LaneEvents> events;
  for (const EventLog& log : logs_)
    events.push_back(
        {static_cast<int>(events.size()), std::span(log.events).first(log.count), log.dropped});
  return events;
}

void ThreadReplay::bind_batch(std::span<const void* const> host) {
  batch_.assign(host.begin(), host.end());
}

void ThreadReplay::run() {
  for (Scratch& worker : scratch_) std::ranges::fill(worker.totals, 0);
  for (EventLog& log : logs_) {
    log.count = 0;
    log.dropped = 0;
  }
  if (pool_.workers() > 1 && choice_.window_begins()) delay_ns_ = delay_of_workers();
  const int64_t begin_ns = now_ns();
  if (choice_.alone()) {
    Walk walk = begin_walk(0);
    walk.solo = walk.alone = true;
    this->walk(launches_, walk);
  } else {
    pool_.run(
        [](void* context, int worker) {
          auto& self = *static_cast<ThreadReplay*>(context);
          Walk walk = self.begin_walk(worker);
          self.walk(self.launches_, walk);
        },
        this);
  }
  if (pool_.workers() > 1 && choice_.ran(begin_ns, now_ns()))
    choice_.decide(delay_of_workers() - delay_ns_);
}

ThreadReplay::Walk ThreadReplay::begin_walk(int worker) {
  Scratch& scratch = scratch_[static_cast<size_t>(worker)];
  Walk walk;
  walk.worker = walk.rank = worker;
  walk.thread_group = &all_;
  walk.indices = scratch.indices.data();
  walk.made = scratch.made.data();
  walk.totals = scratch.totals.data();
  walk.arguments = scratch.arguments.data();
  if (!logs_.empty()) walk.log = &logs_[static_cast<size_t>(worker)];
  return walk;
}

// Nanoseconds since the threads began; 0 where the system does not say.
int64_t ThreadReplay::delay_of_workers() const {
  int64_t sum = run_delay_ns(thread_id()).value_or(0);
  for (const int each : pool_.thread_ids()) sum += run_delay_ns(each).value_or(0);
  return sum;
}

// Batch inputs are never written, but kernels take one table for what they read and write.
char* ThreadReplay::at(const Place& place, const Walk& walk) const {
  char* result = place.base;
  if (place.batch_input >= 0)
    result = static_cast<char*>(const_cast<void*>(batch_[static_cast<size_t>(place.batch_input)]));
  if (!place.exchanged_by.empty()) {
    size_t which = 0;
    for (size_t i = 0; i < place.exchanged_by.size(); ++i)
      which |= static_cast<size_t>(walk.made[place.exchanged_by[i]] % 2) << i;
    result = place.exchanged_bases[which];
  }
  result += walk.group * place.group_stride;
  for (const Place::Move& move : place.moves) result += walk.indices[move.loop] * move.stride;
  return result;
}

void ThreadReplay::order(Walk& walk, bool spread) {
  if (!walk.solo && (spread || walk.last_spread)) walk.thread_group->barrier.wait();
  walk.last_spread = spread;
}

void ThreadReplay::walk(const std::vector<PreparedLaunch>& launches, Walk& walk) {
  for (const PreparedLaunch& next : launches) {
    if (next.waits) order(walk, next.group_spread);
    // A thread group may be smaller than others, which launches were shared out for.
    if (!next.parallel && !walk.alone && next.worker % walk.thread_group->workers != walk.rank)
      continue;
    if (walk.log == nullptr || next.id == kNoEvent)
      launch(next, walk);
    else
      timed_launch(next, walk);
  }
}

// The place is taken before the launch, so that a loop stands before what it holds.
void ThreadReplay::timed_launch(const PreparedLaunch& next, Walk& walk) {
  EventLog& log = *walk.log;
  if (log.count == log.events.size()) {
    ++log.dropped;
    launch(next, walk);
    return;
  }
  LaunchEvent& event = log.events[log.count++];
  event.launch = next.id;
  event.begin_ns = now_ns();
  launch(next, walk);
  event.end_ns = now_ns();
}

void ThreadReplay::launch(const PreparedLaunch& launch, Walk& walk) {
  if (launch.kind == RecordedLaunch::Kind::loop) {
    if (launch.loop->thread_groups) return run_thread_groups(*launch.loop, walk);
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
  void* const* arguments = launch.arguments.data();
  if (!launch.moving.empty()) {
    std::copy(launch.arguments.begin(), launch.arguments.end(), walk.arguments);
    for (const auto& [index, place] : launch.moving) walk.arguments[index] = at(place, walk);
    arguments = walk.arguments;
  }
  const auto bytes = static_cast<size_t>(end - begin);
  switch (launch.kind) {
    case RecordedLaunch::Kind::copy:
      std::memcpy(static_cast<char*>(arguments[1]) + begin,
                  static_cast<const char*>(arguments[0]) + begin, bytes);
      return;
    default: launch.kernel->run(arguments, begin, end, walk.rank);
  }
}

// The memory of the index is written for those who read it as a value; the walk goes by its own copy.
void ThreadReplay::begin_iteration(const Loop& loop, int64_t index, const Walk& walk) const {
  if (walk.rank == 0 && loop.index) std::memcpy(at(*loop.index, walk), &index, sizeof(index));
}

// Called by every worker of the pool, behind a barrier; the next launch comes behind another one.
void ThreadReplay::run_thread_groups(const Loop& loop, const Walk& walk) {
  const int groups = loop.range.groups;
  if (!walk.alone)
    return run_thread_group(loop, thread_group_of(walk.worker, groups, pool_.workers()), walk);
  for (int number = 0; number < groups; ++number) run_thread_group(loop, number, walk);
}

void ThreadReplay::run_thread_group(const Loop& loop, int number, const Walk& walk) {
  const LoopRange& range = loop.range;
  Walk own = walk;
  own.thread_group = (*loop.thread_groups)[static_cast<size_t>(number)].get();
  own.group = number;
  if (!walk.alone) own.rank = walk.worker - first_worker(number, range.groups, pool_.workers());
  own.last_spread = false;
  for (int64_t i = number; i < range.iterations; i += range.groups) {
    order(own, false);
    own.indices[loop.depth] = range.reverse ? range.iterations - 1 - i : i;
    begin_iteration(loop, own.indices[loop.depth], own);
    this->walk(loop.body, own);
    if (own.rank == 0) ++own.totals[loop.number];
  }
}

// Called by every worker of a thread group, or by the first alone (walk.solo). Between two barriers either one worker
// writes shared things (index, carried values) or all read them.
void ThreadReplay::run_loop(const PreparedLaunch& launch, Walk& walk) {
  const Loop& loop = *launch.loop;
  const LoopRange& range = loop.range;
  int64_t iterations = range.iterations;
  if (loop.count) {
    int64_t count = 0;
    std::memcpy(&count, at(*loop.count, walk), sizeof(count));
    iterations = std::clamp<int64_t>(count, 0, iterations);
  }
  // The launch itself came after a barrier if it is parallel; what follows on worker 0 is ordered as if it were a
  // launch of one worker.
  walk.last_spread = false;
  int64_t& executed = walk.made[loop.depth] = 0;
  while (executed < iterations) {
    order(walk, false);
    walk.indices[loop.depth] = range.reverse ? iterations - 1 - executed : executed;
    begin_iteration(loop, walk.indices[loop.depth], walk);
    this->walk(loop.body, walk);
    order(walk, false);
    bool stop = false;
    if (loop.stop) {
      if (!walk.solo) walk.thread_group->barrier.wait();
      stop = *at(*loop.stop, walk) != 0;
      if (!walk.solo)
        walk.thread_group->barrier.wait();  // nobody overwrites the flag before all have read
    }
    ++executed;
    if (stop) break;
  }
  order(walk, false);
  if (walk.rank == 0) walk.totals[loop.number] += executed;
  if (walk.rank == 0 && loop.executed)
    std::memcpy(at(*loop.executed, walk), &executed, sizeof(executed));
  finish_loop(loop, iterations, executed, walk);
}

// Nobody reads a byte of it before the next launch.
void ThreadReplay::finish_loop(const Loop& loop, int64_t most, int64_t executed, Walk& walk) {
  if (executed % 2 != 0) this->walk(loop.exchanged, walk);
  const bool shared = loop.shares_clearing && !walk.solo;
  if (!shared && walk.rank != 0) return;
  walk.last_spread |= shared;
  for (const Rows& rows : loop.cleared)
    for (const RowRange& range : rows_not_made(loop.range, most, executed)) {
      const int64_t bytes = std::max<int64_t>(range.end - range.begin, 0) * rows.row_bytes;
      const int64_t workers = shared ? walk.thread_group->workers : 1;
      const int64_t begin = bytes * walk.rank / workers;
      const int64_t end = bytes * (walk.rank + 1) / workers;
      if (begin >= end) continue;
      std::memset(at(rows.rows, walk) + range.begin * rows.row_bytes + begin, 0,
                  static_cast<size_t>(end - begin));
    }
}

}  // namespace fullbore::cpu
