#include "fullbore/device/cuda/executor/cuda_replay.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fullbore/device/cuda/executor/graph_sink.h"
#include "fullbore/device/cuda/executor/program_cut.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kMostEvents = 1 << 16;

bool is_blocking() {
  const char* const value = std::getenv("FULLBORE_CUDA_BLOCKING");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "1";
}

/// Launches of kernels, those of loops behind them.
std::vector<InFlight::Kernel> kernels_of(std::span<const RecordedLaunch> launches) {
  std::vector<InFlight::Kernel> kernels;
  for (const RecordedLaunch& launch : launches)
    if (launch.kind == RecordedLaunch::Kind::kernel) {
      const auto& node = dynamic_cast<const CompiledNode&>(*launch.kernel);
      if (node.nodes() > 0) kernels.push_back({launch.id, &node.node()});
    } else if (launch.kind == RecordedLaunch::Kind::loop) {
      const std::vector<InFlight::Kernel> inner = kernels_of(launch.loop->body);
      kernels.insert(kernels.end(), inner.begin(), inner.end());
    }
  return kernels;
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

CudaReplay::CudaReplay(std::shared_ptr<Context> context, std::vector<RecordedLaunch> launches,
                       std::vector<RecordedLaunch> behind, size_t first_waiting)
    : context_(std::move(context)),
      launches_(std::move(launches)),
      behind_(std::move(behind)),
      first_waiting_(first_waiting),
      blocking_(is_blocking()),
      in_flight_(context_->card().number, kernels_of(launches_)),
      batch_(context_, batch_field_bytes(launches_)),
      kinds_(context_->card().facts.multiprocessors),
      stream_(context_, in_flight_, blocking_) {
  parts_.batch = batch_.fields();
  load(launches_);
  if (blocking_) return;
  conditional_ = ConditionalLoops::of(context_, launches_);
  parts_.conditional = conditional_.get();
  pieces_ = cut_program(context_, parts_, kinds_, launches_, first_waiting_);
  make_copies_behind();
  for (const auto& [loop, pieces] : pieces_)
    for (const ProgramPiece& piece : pieces)
      counts_on_card_.insert(piece.counts_on_card.begin(), piece.counts_on_card.end());
}

CudaReplay::~CudaReplay() {
  if (const Driver* const driver = context_->enter_to_destroy())
    driver->wait_for_stream.attempt(context_->main());
  if (context_->left_by() == this) context_->end_copies();
}

void CudaReplay::make_copies_behind() {
  if (behind_.empty()) return;
  GraphSink sink(context_, kinds_);
  for (const RecordedLaunch& copy : behind_)
    sink.copy({.address = copy.operands[0].base}, {.address = copy.operands[1].base}, copy.bytes);
  copies_behind_ = sink.finish(false);
  (void)context_->behind();  // a run makes nothing
  made_ = std::make_unique<Event>(context_);
}

void CudaReplay::run_copies_behind() {
  if (had_graphs_ && copies_behind_) {
    const Driver& driver = context_->enter();
    StreamHandle const behind = context_->behind();
    driver.record_event(made_->get(), context_->main());
    driver.wait_in_stream(behind, made_->get(), 0);
    copies_behind_->launch(behind);
    context_->leave_behind(this);
    return;
  }
  for (const RecordedLaunch& copy : behind_) {
    stream_.begin_launch(copy.id);
    stream_.copy({.address = copy.operands[0].base}, {.address = copy.operands[1].base},
                 copy.bytes);
    stream_.end_launch();
  }
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

void CudaReplay::bind_batch(std::span<const void* const> host) { batch_.bring(host); }

void CudaReplay::run() {
  in_flight_.begin_run();
  batch_.wait_in_main();
  had_graphs_ = !is_profiling_;
  if (is_profiling_) stream_.begin_run();
  const bool waits_later = had_graphs_ && copies_behind_ && first_waiting_ > 0;
  if (!waits_later || context_->left_by() != this) context_->wait_for_copies_in_main();
  if (had_graphs_ && !counts_on_card_.empty()) conditional_->begin_run();
  ProgramWalk walk(parts_, stream_, is_profiling_ ? nullptr : &pieces_);
  walk.program(launches_);
  iterations_ = std::move(walk.iterations_made());
  batch_.release();
  run_copies_behind();
  runs_ = true;
}

void CudaReplay::wait() {
  const Driver& driver = context_->enter();
  driver.wait_for_stream(context_->main());
  InFlight::end(context_->card().number);
  if (is_profiling_ && runs_) stream_.end_run();
}

int64_t CudaReplay::iterations_made(int loop) const {
  if (const auto on_card = counts_on_card_.find(loop);
      had_graphs_ && on_card != counts_on_card_.end())
    return conditional_->iterations(on_card->second.loop) * on_card->second.each;
  const auto known = iterations_.find(loop);
  return known == iterations_.end() ? 0 : known->second;
}

void CudaReplay::set_profiling(bool on) {
  if (on == is_profiling_) return;
  is_profiling_ = on;
  runs_ = false;
  stream_.set_profiling(on ? times_of(launches_) + times_of(behind_) : 0);
}

std::vector<LaneEvents> CudaReplay::events() const {
  if (!is_profiling_) return {};
  return {{.lane = 0, .events = stream_.events(), .dropped = stream_.dropped()}};
}

}  // namespace fullbore::cuda
