#include "fullbore/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr double kOneCycleDivisor = 25;  // of the rate, at step 0

// How much of the way from `begin` to `end` is done: 0 before, 1 after, also where there is no way.
Tensor progress(Tensor position, double begin, double end) {
  return clamp((position - begin) / std::max(1.0, end - begin), 0, 1);
}

Tensor line(Tensor progress, double from, double to) { return progress * (to - from) + from; }

Tensor half_cosine(Tensor progress, double from, double to) {
  return (cos(progress * std::numbers::pi) + 1.0) * (0.5 * (from - to)) + to;
}

Tensor one_cycle(Tensor position, const ScheduleOptions& options) {
  const double peak = static_cast<double>(options.warmup_steps) - 1;
  const double last = static_cast<double>(options.total_steps) - 1;
  const double rate = options.learning_rate;
  const double top = std::max(0.0, peak);
  const Tensor falling =
      half_cosine(progress(position, top, last), rate, options.minimum_learning_rate);
  if (peak <= 0) return falling;
  const Tensor rising = half_cosine(progress(position, 0, peak), rate / kOneCycleDivisor, rate);
  return select(less(position, peak), rising, falling);
}

Tensor after_warmup(Tensor position, const ScheduleOptions& options) {
  const double rate = options.learning_rate;
  const double floor = options.minimum_learning_rate;
  const auto begin = static_cast<double>(options.warmup_steps);
  const auto end = static_cast<double>(options.total_steps);
  if (options.schedule == "constant" || options.schedule == "plateau")
    return full(position.builder(), {DType::f64, {}}, rate);
  if (options.schedule == "linear") return line(progress(position, begin, end), rate, floor);
  if (options.schedule == "cosine") return half_cosine(progress(position, begin, end), rate, floor);
  const double decay = std::max(begin, end - std::round(end * options.decay_fraction));
  return line(progress(position, decay, end), rate, floor);
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {
      "cosine", "constant", "linear", "warmup_stable_decay", "one_cycle", "plateau"};
  return names;
}

Tensor scheduled_learning_rate(Tensor step, const ScheduleOptions& options) {
  const std::vector<std::string>& names = schedule_names();
  if (std::find(names.begin(), names.end(), options.schedule) == names.end())
    throw UsageError(fmt::format("unknown schedule '{}'.{}", options.schedule,
                                 did_you_mean(options.schedule, names)));
  const Tensor position = cast(step, DType::f64);
  if (options.schedule == "one_cycle") return one_cycle(position, options);
  const auto warmup = static_cast<double>(options.warmup_steps);
  const double earlier = options.warmup_from_zero ? 0 : 1;
  const Tensor rising =
      (position + earlier) * (options.learning_rate / std::max(1.0, warmup + earlier));
  return select(less(position, warmup), rising, after_warmup(position, options));
}

}  // namespace fullbore
