#include "fullbore/nn/rms_norm.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore::nn {

Tensor rms_norm(Trace& trace, const std::string& name, Tensor x, double epsilon,
                Initializer initializer, SourceLoc loc) {
  if (x.rank() == 0)
    throw UsageError(fmt::format("rms_norm: needs x [..., C], got {}", x.type().text()), loc);
  const Scope scope(trace, name);
  const Tensor gain = trace.parameter("weight", {x.dim(-1)}, std::move(initializer), loc);
  return fullbore::rms_norm(x, gain, epsilon, loc);
}

}  // namespace fullbore::nn
