#include "fullbore/train/penalty_controller.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

constexpr double kLeast = 0.001;
constexpr double kMost = 1;
constexpr double kLargestError = 0.2;
constexpr size_t kFirstValue = 3;

}  // namespace

std::optional<PenaltyControl> parse_penalty_control(std::string_view name) {
  if (name == "none") return PenaltyControl::none;
  if (name == "step") return PenaltyControl::step;
  if (name == "window") return PenaltyControl::window;
  if (name == "proportional") return PenaltyControl::proportional;
  if (name == "exponential") return PenaltyControl::exponential;
  return std::nullopt;
}

PenaltyController::PenaltyController(const PenaltyOptions& options)
    : options_(options), numbers_(static_cast<size_t>(kNumbers), 0.0) {
  numbers_[0] = options.initial;
}

void PenaltyController::restore(std::span<const double> numbers) {
  FB_CHECK(numbers.size() == numbers_.size(), "{} numbers", numbers.size());
  std::ranges::copy(numbers, numbers_.begin());
}

double PenaltyController::coefficient() const {
  return numbers_[2] < static_cast<double>(options_.warmup) ? 0 : numbers_[0];
}

double PenaltyController::window_mean() {
  const auto count = static_cast<size_t>(std::min<double>(observed(), kWindow));
  const auto first = numbers_.begin() + kFirstValue;
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

void PenaltyController::observe(double value) {
  numbers_[2] += 1;
  if (!std::isfinite(value)) return;
  numbers_[kFirstValue + static_cast<size_t>(std::fmod(observed(), kWindow))] = value;
  observed() += 1;
  const double relative = value / options_.target;
  const double error = std::clamp(relative - 1, -kLargestError, kLargestError);
  double factor = 1;
  switch (options_.control) {
    case PenaltyControl::none: return;
    case PenaltyControl::step: factor = relative > 1.5 ? 1.1 : relative < 0.5 ? 0.9 : 1; break;
    case PenaltyControl::window: {
      const double mean = window_mean() / options_.target;
      factor = mean > 2 ? 1.5 : mean < 0.5 ? 0.8 : 1;
      break;
    }
    case PenaltyControl::proportional: factor = 1 + 0.1 * error; break;
    case PenaltyControl::exponential: factor = std::exp(error); break;
  }
  current() = std::clamp(current() * factor, kLeast, kMost);
}

}  // namespace fullbore
