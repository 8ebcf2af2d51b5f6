#include "fullbore/optim/plateau.h"

#include <limits>

#include "fullbore/ops/ops.h"

namespace fullbore {

Tensor plateau_factor(Trace& trace, Tensor loss, const PlateauOptions& options,
                      const std::function<void(Tensor state, Tensor next)>& keep) {
  const auto number = [&](const char* name, double initial) {
    return trace.state(name, Role::control, {DType::f64, {}}, Initializer::given({initial}));
  };
  const auto count = [&](const char* name) {
    return trace.state(name, Role::control, {DType::i64, {}}, Initializer::zeros());
  };
  const Tensor sum = number("plateau.loss", 0);
  const Tensor best = number("plateau.best", std::numeric_limits<double>::infinity());
  const Tensor factor = number("plateau.factor", 1);
  const Tensor steps = count("plateau.steps");
  const Tensor bad = count("plateau.bad");

  const Tensor next_sum = sum + cast(loss, DType::f64);
  const Tensor next_steps = steps + 1.0;
  const Tensor ends = greater_equal(next_steps, static_cast<double>(options.interval));
  const Tensor mean = next_sum / cast(next_steps, DType::f64);
  const Tensor is_better = less(mean, best * (1.0 - options.threshold));
  const Tensor next_bad = select(is_better, 0.0, bad + 1.0);
  const Tensor lowers = greater(next_bad, static_cast<double>(options.patience));

  keep(sum, select(ends, 0.0, next_sum));
  keep(steps, select(ends, 0.0, next_steps));
  keep(best, select(logical_and(ends, is_better), mean, best));
  keep(bad, select(ends, select(lowers, 0.0, next_bad), bad));
  keep(factor, select(logical_and(ends, lowers), factor * options.factor, factor));
  return factor;
}

}  // namespace fullbore
