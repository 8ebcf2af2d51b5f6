#pragma once
#include <cstdint>
#include <functional>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// Lowers the learning rate where the loss falls no more: the rule of PyTorch's ReduceLROnPlateau (mode "min",
/// threshold relative, cooldown 0), with an interval of so many steps for its epoch.
struct PlateauOptions {
  double factor = 0.5;      ///< of the rate, each time
  int64_t patience = 10;    ///< intervals in a row without a better mean loss that are borne
  int64_t interval = 100;   ///< steps whose mean loss is compared
  double threshold = 1e-4;  ///< share of the best mean loss by which a better one is below it
};

/// What the learning rate of this step is multiplied by, f64[]: 1 at first, times `factor` whenever more than `patience`
/// intervals in a row had no better mean of `loss` (floating, []). A part of the graph: its State is plateau.loss,
/// plateau.best and plateau.factor (f64[]), plateau.steps and plateau.bad (i64[]). `keep` takes note of a State's next
/// value, and may leave out those of a step that is skipped.
Tensor plateau_factor(Trace& trace, Tensor loss, const PlateauOptions& options,
                      const std::function<void(Tensor state, Tensor next)>& keep);

}  // namespace fullbore
