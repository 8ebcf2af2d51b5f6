#include "fullbore/device/cuda/executor/stream_sink.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "fullbore/device/cuda/executor/launchable_graph.h"
#include "fullbore/device/cuda/executor/library_calls.h"

namespace fullbore::cuda {
namespace {

constexpr unsigned kWithTime = 0;
// In `open_`: a launch that there was no room for.
constexpr size_t kNoRoom = SIZE_MAX;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

StreamSink::StreamSink(std::shared_ptr<Context> context, InFlight& in_flight, bool blocking)
    : context_(std::move(context)),
      in_flight_(in_flight),
      blocking_(blocking),
      number_(context_, sizeof(int64_t)) {}

void StreamSink::kernel(const LoadedKernel& kernel, std::span<const Place> operands) {
  const Driver& driver = context_->enter();
  for (const LoadedLaunch& loaded : kernel.launches) {
    const Launch& launch = *loaded.launch;
    int code = driver.launch.attempt(
        loaded.function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
        launch.block.y, launch.block.z, static_cast<unsigned>(launch.dynamic_shared_bytes),
        context_->main(), arguments_.of(*context_, launch, operands), nullptr);
    // A launch that is refused because the card has failed is not the one that failed, unless all before were waited for.
    if (code != kSuccess && is_lost(code) && !blocking_) throw_failure(driver.launch.name(), code);
    if (code != kSuccess) throw_launch_failure(driver.launch.name(), code, kernel, launch);
    in_flight_.tell(launch_, launch_);
    if (!blocking_) continue;
    code = driver.wait_for_stream.attempt(context_->main());
    if (code != kSuccess) throw_launch_failure(driver.wait_for_stream.name(), code, kernel, launch);
    InFlight::end(context_->card().number);
  }
  if (kernel.node->library() == nullptr) return;
  tell_call(kernel, operands, context_->main());
  in_flight_.tell(launch_, launch_);
  if (!blocking_) return;
  if (const int code = driver.wait_for_stream.attempt(context_->main()); code != kSuccess)
    throw_call_failure(driver.wait_for_stream.name(), code, kernel);
  InFlight::end(context_->card().number);
}

void StreamSink::copy(const Place& from, const Place& to, int64_t bytes) {
  if (bytes <= 0) return;
  const Driver& driver = context_->enter();
  const auto count = static_cast<size_t>(bytes);
  if (const std::byte* const host = context_->in_host(from.address))
    return driver.copy_in(to.address.value, host, count, context_->main());
  if (std::byte* const host = context_->in_host(to.address))
    return driver.copy_out(host, from.address.value, count, context_->main());
  driver.copy(to.address.value, from.address.value, count, context_->main());
}

void StreamSink::clear(const Place& to, int64_t bytes) {
  if (bytes > 0)
    context_->enter().fill_bytes(to.address.value, 0, static_cast<size_t>(bytes), context_->main());
}

void StreamSink::set_number(const Place& to, int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  const Driver& driver = context_->enter();
  driver.fill_words(to.address.value, static_cast<unsigned>(bits), 1, context_->main());
  driver.fill_words(to.address.value + 4, static_cast<unsigned>(bits >> 32), 1, context_->main());
}

int64_t StreamSink::number(const Place& at, int64_t bytes) {
  const Driver& driver = context_->enter();
  driver.copy_out(number_.get(), at.address.value, static_cast<size_t>(bytes), context_->main());
  driver.wait_for_stream(context_->main());
  InFlight::end(context_->card().number);
  int64_t value = 0;
  std::memcpy(&value, number_.get(), static_cast<size_t>(bytes));
  return value;
}

void StreamSink::graph(LaunchableGraph& graph, int first, int last) {
  graph.launch();
  if (first <= last) in_flight_.tell(first, last);
}

void StreamSink::set_profiling(int64_t most) {
  timed_.clear();
  for (int64_t i = 0; i < most; ++i)
    timed_.push_back({.id = 0,
                      .begin = std::make_unique<Event>(context_, kWithTime),
                      .end = std::make_unique<Event>(context_, kWithTime)});
  first_ = most > 0 ? std::make_unique<Event>(context_, kWithTime) : nullptr;
  events_.clear();
  events_.reserve(timed_.size());
}

void StreamSink::begin_run() {
  used_ = 0;
  dropped_ = 0;
  open_.clear();
  events_.clear();
  if (!first_) return;
  const Driver& driver = context_->enter();
  driver.record_event(first_->get(), context_->main());
  driver.wait_for_event(first_->get());  // the one moment that both clocks know
  begin_ns_ = now_ns();
}

void StreamSink::begin_launch(int id) {
  launch_ = id;
  if (!first_) return;
  if (used_ == timed_.size()) {
    ++dropped_;
    open_.push_back(kNoRoom);
    return;
  }
  open_.push_back(used_);
  TimedLaunch& launch = timed_[used_++];
  launch.id = id;
  context_->enter().record_event(launch.begin->get(), context_->main());
}

void StreamSink::end_launch() {
  if (!first_) return;
  const size_t which = open_.back();
  open_.pop_back();
  if (which != kNoRoom) context_->enter().record_event(timed_[which].end->get(), context_->main());
}

void StreamSink::end_run() {
  if (!first_) return;
  const Driver& driver = context_->enter();
  const auto at = [&](const Event& event) {
    float milliseconds = 0;
    driver.milliseconds(&milliseconds, first_->get(), event.get());
    return begin_ns_ + static_cast<int64_t>(double{milliseconds} * 1e6);
  };
  for (size_t i = 0; i < used_; ++i)
    events_.push_back(
        {.launch = timed_[i].id, .begin_ns = at(*timed_[i].begin), .end_ns = at(*timed_[i].end)});
}

}  // namespace fullbore::cuda
