#include "fullbore/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {

Tensor scheduled_learning_rate(Tensor step, const ScheduleOptions& options) {
  const Tensor position = cast(step, DType::f64);
  const auto warmup = static_cast<double>(options.warmup_steps);
  const Tensor rising = (position + 1.0) * (options.learning_rate / (warmup + 1));
  Tensor after;
  if (options.schedule == "constant") {
    after = full(step.builder(), {DType::f64, {}}, options.learning_rate);
  } else if (options.schedule == "cosine") {
    const double span =
        std::max(1.0, static_cast<double>(options.total_steps - options.warmup_steps));
    const Tensor progress = clamp((position - warmup) / span, 0, 1);
    after = (cos(progress * std::numbers::pi) + 1.0) *
                (0.5 * (options.learning_rate - options.minimum_learning_rate)) +
            options.minimum_learning_rate;
  } else {
    throw UsageError(fmt::format("unknown schedule '{}'.{}", options.schedule,
                                 did_you_mean(options.schedule, {"cosine", "constant"})));
  }
  return select(less(position, warmup), rising, after);
}

}  // namespace fullbore
