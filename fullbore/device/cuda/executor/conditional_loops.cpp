#include "fullbore/device/cuda/executor/conditional_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "fullbore/device/cuda/driver/in_flight.h"
#include "fullbore/device/cuda/makers/launching.h"

namespace fullbore::cuda {
namespace {

// So few are decided about one by one.
constexpr int64_t kFewIterations = 16;
constexpr uint32_t kThreads = 256;
constexpr int64_t kMostByteBlocks = 1024;  ///< kernels walk on from there
constexpr int64_t kVectorBytes = 16;

/// Of a loop, in the card's memory: kernels/loops.cpp has the same.
struct LoopState {
  int64_t most, executed, stopped, total;
};
constexpr int64_t kStateBytes = sizeof(LoopState);
static_assert(kStateBytes == 32);

void find_loops(std::span<const RecordedLaunch> launches, std::vector<const RecordedLoop*>& found) {
  for (const RecordedLaunch& launch : launches) {
    if (launch.kind != RecordedLaunch::Kind::loop) continue;
    if (depends_on_data(launch.loop->range)) found.push_back(launch.loop.get());
    find_loops(launch.loop->body, found);
  }
}

int64_t bytes_of(size_t loops) { return kStateBytes * static_cast<int64_t>(loops); }

}  // namespace

int64_t chunk_of(int64_t iterations) {
  if (iterations <= kFewIterations) return std::max<int64_t>(1, iterations);
  return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(iterations))));
}

/// A launch, parameter by parameter.
class ConditionalLoops::Assembly {
 public:
  Assembly(const ConditionalLoops& loops, Entry entry)
      : made_{.launch = loops.launches_[entry], .function = loops.functions_[entry]} {}

  /// By as many threads as share so many bytes.
  Assembly& over(int64_t bytes) {
    const int64_t blocks = divide_up(bytes, kVectorBytes * kThreads);
    made_.launch.block = {.x = kThreads};
    made_.launch.grid = {
        .x = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, kMostByteBlocks))};
    return *this;
  }
  Assembly& reads(const Place& place, int64_t bytes) { return touches(place, bytes, false); }
  Assembly& writes(const Place& place, int64_t bytes) { return touches(place, bytes, true); }
  /// A null pointer, where there is none.
  Assembly& reads(const std::optional<Place>& place, int64_t bytes) {
    return place ? reads(*place, bytes) : add(null());
  }
  Assembly& writes(const std::optional<Place>& place, int64_t bytes) {
    return place ? writes(*place, bytes) : add(null());
  }
  Assembly& number(int64_t given) { return add(value(given)); }
  ControlLaunch take() { return std::move(made_); }

 private:
  Assembly& add(Argument argument) {
    made_.launch.arguments.push_back(std::move(argument));
    return *this;
  }
  Assembly& touches(const Place& place, int64_t bytes, bool is_written) {
    add(operand(made_.operands.size()));
    made_.operands.push_back(place);
    made_.uses.push_back({bytes, is_written});
    return *this;
  }

  ControlLaunch made_;
};

std::unique_ptr<ConditionalLoops> ConditionalLoops::of(std::shared_ptr<Context> context,
                                                       std::span<const RecordedLaunch> launches) {
  std::vector<const RecordedLoop*> loops;
  find_loops(launches, loops);
  if (loops.empty() || !context->enter().has_conditional_nodes()) return nullptr;
  // The driver's own linker knows cudaGraphSetConditional. Where it does not, the host steps loops as with older drivers.
  try {
    return std::make_unique<ConditionalLoops>(std::move(context), loops);
  } catch (const CodeRefused&) {
    return nullptr;
  }
}

ConditionalLoops::ConditionalLoops(std::shared_ptr<Context> context,
                                   std::span<const RecordedLoop* const> loops)
    : context_(std::move(context)),
      states_(context_, bytes_of(loops.size())),
      seen_states_(context_, bytes_of(loops.size())) {
  for (const RecordedLoop* const loop : loops) numbers_.emplace(loop, numbers_.size());
  constexpr const char* kNames[] = {"begin_loop",      "decide_iteration", "end_iteration",
                                    "settle_exchange", "clear_rows",       "finish_loop"};
  std::vector<LoadRequest> requests;
  for (size_t i = 0; i < kEntries; ++i) {
    launches_[i] = launch("loops", kNames[i], {}, {}, {});
    requests.push_back({launches_[i].module, launches_[i].entry, 0});
  }
  context_->load(requests);
  for (size_t i = 0; i < kEntries; ++i)
    functions_[i] = context_->function(launches_[i].module, launches_[i].entry, 0);
}

Place ConditionalLoops::state(const RecordedLoop& loop) const {
  const Address first{states_.get()};
  return {.address = first + kStateBytes * static_cast<int64_t>(number_of(loop))};
}

ControlLaunch ConditionalLoops::begin(const RecordedLoop& loop,
                                      const std::optional<Place>& count) const {
  return Assembly(*this, begins)
      .writes(state(loop), kStateBytes)
      .reads(count, sizeof(int64_t))
      .number(loop.range.iterations)
      .take();
}

ControlLaunch ConditionalLoops::decide(const RecordedLoop& loop, int64_t first) const {
  return Assembly(*this, decides).reads(state(loop), kStateBytes).number(first).take();
}

ControlLaunch ConditionalLoops::end_iteration(const RecordedLoop& loop,
                                              const std::optional<Place>& stop) const {
  return Assembly(*this, ends_iteration)
      .writes(state(loop), kStateBytes)
      .reads(stop, sizeof(bool))
      .take();
}

ControlLaunch ConditionalLoops::settle(const RecordedLoop& loop, const Place& from, const Place& to,
                                       int64_t bytes) const {
  const bool crosses = is_crossed(loop.range);
  Assembly launch(*this, settles);
  launch.over(bytes).reads(state(loop), kStateBytes);
  if (crosses)
    launch.writes(from, bytes);
  else
    launch.reads(from, bytes);
  return launch.writes(to, bytes)
      .number(bytes)
      .number(loop.range.iterations)
      .number(crosses ? 1 : 0)
      .take();
}

ControlLaunch ConditionalLoops::clear(const RecordedLoop& loop, const Place& rows,
                                      int64_t row_bytes) const {
  const int64_t iterations = loop.range.iterations;
  return Assembly(*this, clears)
      .over(row_bytes * iterations)
      .reads(state(loop), kStateBytes)
      .writes(rows, row_bytes * iterations)
      .number(row_bytes)
      .number(iterations)
      .number(loop.range.reverse ? 1 : 0)
      .take();
}

ControlLaunch ConditionalLoops::finish(const RecordedLoop& loop,
                                       const std::optional<Place>& executed) const {
  return Assembly(*this, finishes)
      .writes(state(loop), kStateBytes)
      .writes(executed, sizeof(int64_t))
      .take();
}

// All of it: a decision that came too early would find that there is nothing to be done.
void ConditionalLoops::begin_run() {
  are_seen_ = false;
  context_->enter().fill_bytes(states_.get(), 0, static_cast<size_t>(bytes_of(numbers_.size())),
                               context_->main());
}

int64_t ConditionalLoops::iterations(size_t number) const {
  if (!are_seen_) {
    const Driver& driver = context_->enter();
    driver.copy_out(seen_states_.get(), states_.get(),
                    static_cast<size_t>(bytes_of(numbers_.size())), context_->main());
    driver.wait_for_stream(context_->main());
    InFlight::end(context_->card().number);
    are_seen_ = true;
  }
  LoopState seen;
  std::memcpy(&seen, seen_states_.get() + number * sizeof seen, sizeof seen);
  return seen.total;
}

}  // namespace fullbore::cuda
