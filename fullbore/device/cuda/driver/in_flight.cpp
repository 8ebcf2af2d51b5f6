#include "fullbore/device/cuda/driver/in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace fullbore::cuda {
namespace {

// Of the process, as a driver is: a call that meets a fault does not know whose it is.
struct Programs {
  std::mutex mutex;
  std::vector<InFlight*> all;
};

Programs& programs() {
  static Programs* const only = new Programs;  // outlives the programs of static objects
  return *only;
}

}  // namespace

InFlight::InFlight(int card, std::vector<Kernel> kernels)
    : card_(card), kernels_(std::move(kernels)) {
  const std::scoped_lock lock(programs().mutex);
  programs().all.push_back(this);
}

InFlight::~InFlight() {
  const std::scoped_lock lock(programs().mutex);
  std::erase(programs().all, this);
}

void InFlight::begin_run() {
  const std::scoped_lock lock(programs().mutex);
  ++run_;
}

void InFlight::tell(int first, int last) {
  const std::scoped_lock lock(programs().mutex);
  if (last_ < first_) {
    first_ = first;
    last_ = last;
    first_run_ = run_;
  }
  first_ = std::min(first_, first);
  last_ = std::max(last_, last);
}

void InFlight::end(int card) {
  const std::scoped_lock lock(programs().mutex);
  for (InFlight* const each : programs().all)
    if (each->card_ == card) {
      each->first_ = 0;
      each->last_ = -1;
    }
}

std::string InFlight::text() const {
  std::vector<const Kernel*> told;
  for (const Kernel& kernel : kernels_)
    if (kernel.launch >= first_ && kernel.launch <= last_) told.push_back(&kernel);
  if (told.empty()) return "";
  const std::string runs = first_run_ == run_ ? fmt::format("Run {}", run_)
                                              : fmt::format("Runs {} to {}", first_run_, run_);
  const std::string program =
      fmt::format("{} of a program of {} kernels {} under way on card {}: ", runs, kernels_.size(),
                  first_run_ == run_ ? "was" : "were", card_);
  if (told.size() == 1)
    return fmt::format("{}launch {}, {}. ", program, told[0]->launch, *told[0]->node);
  return fmt::format(
      "{}one of {} launches, from launch {}, {}, to launch {}, {}. With FULLBORE_CUDA_BLOCKING=1 "
      "in the environment each launch is waited for, and the error names the one that failed. ",
      program, told.size(), told.front()->launch, *told.front()->node, told.back()->launch,
      *told.back()->node);
}

std::string in_flight_text() {
  const std::scoped_lock lock(programs().mutex);
  std::string text;
  for (const InFlight* const each : programs().all) text += each->text();
  return text;
}

}  // namespace fullbore::cuda
