#include "fullbore/device/cuda/executor/cuda_replay.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore::cuda {
namespace {

// A node takes some hundred bytes of the driver's memory and microseconds to build.
constexpr int64_t kMostNodes = 20'000;
constexpr int64_t kMostEvents = 1 << 16;

bool is_blocking() {
  const char* const value = std::getenv("FULLBORE_CUDA_BLOCKING");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "1";
}

int64_t nodes_of(std::span<const RecordedLaunch> launches);

/// Nodes of a graph that makes it; more than kMostNodes: too many, or nobody knows how many.
int64_t nodes_of(const RecordedLaunch& launch) {
  constexpr int64_t kTooMany = kMostNodes + 1;
  switch (launch.kind) {
    case RecordedLaunch::Kind::kernel:
      return static_cast<int64_t>(
          dynamic_cast<const CompiledNode&>(*launch.kernel).launches().size());
    case RecordedLaunch::Kind::copy: return 1;
    case RecordedLaunch::Kind::loop: break;
  }
  const RecordedLoop& loop = *launch.loop;
  const LoopRange& range = loop.range;
  if (range.count || range.stop) return kTooMany;
  // With a join each for the body and its carries, and the halves of the index.
  const int64_t each = nodes_of(loop.body) + static_cast<int64_t>(loop.carries.size()) + 4;
  if (each > kMostNodes || range.iterations > kMostNodes) return kTooMany;
  return std::min(each * range.iterations + static_cast<int64_t>(loop.exchanges.size()) + 3,
                  kTooMany);
}

int64_t nodes_of(std::span<const RecordedLaunch> launches) {
  int64_t nodes = 0;
  for (const RecordedLaunch& launch : launches)
    nodes = std::min(nodes + nodes_of(launch), kMostNodes + 1);
  return nodes;
}

/// Launches of kernels, those of loops behind them.
std::vector<InFlight::Kernel> kernels_of(std::span<const RecordedLaunch> launches) {
  std::vector<InFlight::Kernel> kernels;
  for (const RecordedLaunch& launch : launches)
    if (launch.kind == RecordedLaunch::Kind::kernel) {
      const auto& node = dynamic_cast<const CompiledNode&>(*launch.kernel);
      if (!node.launches().empty()) kernels.push_back({launch.id, &node.node()});
    } else if (launch.kind == RecordedLaunch::Kind::loop) {
      const std::vector<InFlight::Kernel> inner = kernels_of(launch.loop->body);
      kernels.insert(kernels.end(), inner.begin(), inner.end());
    }
  return kernels;
}

/// Ids of the first and the last of them; loops come before their bodies.
std::pair<int, int> range_of(std::span<const RecordedLaunch> launches) {
  const RecordedLaunch* last = &launches.back();
  while (last->kind == RecordedLaunch::Kind::loop && !last->loop->body.empty())
    last = &last->loop->body.back();
  return {launches.front().id, last->id};
}

/// Launches of the launch list in a run at most.
int64_t times_of(std::span<const RecordedLaunch> launches) {
  int64_t times = 0;
  for (const RecordedLaunch& launch : launches) {
    ++times;
    if (launch.kind == RecordedLaunch::Kind::loop && !launch.loop->body.empty())
      times += std::min(launch.loop->range.iterations, kMostEvents) * times_of(launch.loop->body);
    times = std::min(times, kMostEvents);
  }
  return times;
}

}  // namespace

CudaReplay::CudaReplay(std::shared_ptr<Context> context, std::vector<RecordedLaunch> launches)
    : context_(std::move(context)),
      launches_(std::move(launches)),
      blocking_(is_blocking()),
      in_flight_(context_->card().number, kernels_of(launches_)),
      batch_(context_, batch_field_bytes(launches_)),
      stream_(context_, in_flight_, blocking_) {
  parts_.batch = batch_.fields();
  load(launches_);
  if (blocking_)
    cut_.push_back({.begin = 0, .end = launches_.size(), .graph = nullptr});
  else
    cut();
}

CudaReplay::~CudaReplay() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->wait_for_stream.attempt(context_->main());
}

void CudaReplay::load(const std::vector<RecordedLaunch>& launches) {
  for (const RecordedLaunch& launch : launches) {
    if (launch.kind == RecordedLaunch::Kind::loop) load(launch.loop->body);
    if (launch.kind != RecordedLaunch::Kind::kernel) continue;
    LoadedKernel& kernel = parts_.kernels[launch.kernel];
    if (kernel.node != nullptr) continue;
    kernel.node = dynamic_cast<const CompiledNode*>(launch.kernel);
    for (const Launch& each : kernel.node->launches())
      kernel.launches.push_back(
          {&each, context_->function(each.module, each.entry, each.dynamic_shared_bytes)});
  }
}

// From the front: as much as a graph may hold, then a loop that does not fit, and so on.
void CudaReplay::cut() {
  int64_t left = kMostNodes;
  for (size_t begin = 0; begin < launches_.size();) {
    size_t end = begin;
    int64_t nodes = 0;
    while (end < launches_.size()) {
      const RecordedLaunch& next = launches_[end];
      const int64_t more = nodes_of(next);
      // Only loops can be stepped: what is none is in a graph in any case.
      if (next.kind == RecordedLaunch::Kind::loop && nodes + more > left) break;
      nodes += more;
      ++end;
    }
    if (end == begin) {
      cut_.push_back({.begin = begin, .end = begin + 1, .graph = nullptr});
      ++begin;
      continue;
    }
    left = std::max<int64_t>(0, left - nodes);
    GraphSink sink(context_);
    ProgramWalk walk(parts_, sink);
    walk.launches(std::span(launches_).subspan(begin, end - begin));
    for (const auto& [loop, iterations] : walk.iterations_made())
      iterations_in_graphs_[loop] += iterations;
    const auto [first, last] = range_of(std::span(launches_).subspan(begin, end - begin));
    if (!sink.is_empty()) cut_.push_back({begin, end, sink.finish(), first, last});
    begin = end;
  }
}

std::span<const RecordedLaunch> CudaReplay::launches_of(const Part& part) const {
  return std::span(launches_).subspan(part.begin, part.end - part.begin);
}

void CudaReplay::bind_batch(std::span<const void* const> host) { batch_.bring(host); }

void CudaReplay::run() {
  const Driver& driver = context_->enter();
  in_flight_.begin_run();
  batch_.wait_in_main();
  iterations_stepped_.clear();
  ProgramWalk walk(parts_, stream_);
  if (is_profiling_) {
    stream_.begin_run();
    walk.launches(launches_);
  } else {
    for (const Part& part : cut_) {
      if (!part.graph) {
        walk.launches(launches_of(part));
        continue;
      }
      driver.launch_graph(part.graph->get(), context_->main());
      in_flight_.tell(part.first, part.last);
    }
  }
  iterations_stepped_ = std::move(walk.iterations_made());
  batch_.release();
  runs_ = true;
}

void CudaReplay::wait() {
  const Driver& driver = context_->enter();
  driver.wait_for_stream(context_->main());
  InFlight::end(context_->card().number);
  if (is_profiling_ && runs_) stream_.end_run();
}

int64_t CudaReplay::iterations_made(int loop) const {
  const auto stepped = iterations_stepped_.find(loop);
  if (stepped != iterations_stepped_.end()) return stepped->second;
  const auto known = iterations_in_graphs_.find(loop);
  return known == iterations_in_graphs_.end() ? 0 : known->second;
}

void CudaReplay::set_profiling(bool on) {
  if (on == is_profiling_) return;
  is_profiling_ = on;
  runs_ = false;
  stream_.set_profiling(on ? times_of(launches_) : 0);
}

std::vector<LaneEvents> CudaReplay::events() const {
  if (!is_profiling_) return {};
  return {{.lane = 0, .events = stream_.events(), .dropped = stream_.dropped()}};
}

}  // namespace fullbore::cuda
