#include "models/hybrid/fusion.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"

namespace fullbore {
namespace {

constexpr double kRwkvGain = 0.7, kMambaGain = 0.3;

Tensor projected(Trace& trace, const char* name, Tensor x, int64_t outputs, Initializer weight) {
  return nn::linear(trace, name, x, outputs,
                    {.bias = false, .weight_initializer = std::move(weight)});
}

FusedBranches by_gains(Trace& trace, Tensor rwkv, Tensor mamba) {
  rwkv = nn::rms_norm(trace, "rwkv_norm", rwkv);
  mamba = nn::rms_norm(trace, "mamba_norm", mamba);
  const auto gain = [&](const char* name, double start) {
    const auto width = static_cast<size_t>(rwkv.dim(2));
    return trace.parameter(name, {rwkv.dim(2)},
                           Initializer::given(std::vector<double>(width, start)));
  };
  const Tensor y = gain("rwkv_gain", kRwkvGain) * rwkv + gain("mamba_gain", kMambaGain) * mamba;
  return {y, rwkv, mamba, {}};
}

// Shares of both that depend on both, `outputs` of them for a token.
FusedBranches by_gate(Trace& trace, Tensor rwkv, Tensor mamba, int64_t outputs, Initializer weight,
                      double start) {
  if (!(start > 0 && start < 1))
    throw UsageError(fmt::format("a gate cannot start at {}; it lies between 0 and 1", start));
  const Tensor both = concat(std::array{rwkv, mamba}, 2);
  const Tensor logits = projected(trace, "gate", both, outputs, std::move(weight));
  const Scope scope(trace, "gate");
  const std::vector<double> logit(static_cast<size_t>(outputs), std::log(start / (1 - start)));
  const Tensor bias = trace.parameter("bias", {outputs}, Initializer::given(logit));
  const Tensor gate = sigmoid(logits + bias);
  return {gate * rwkv + (1.0 - gate) * mamba, rwkv, mamba, gate};
}

FusedBranches by_share(Trace& trace, Tensor rwkv, Tensor mamba) {
  const Tensor share = trace.parameter("share", {}, Initializer::given({0.5}));
  return {share * rwkv + (1.0 - share) * mamba, rwkv, mamba, {}};
}

}  // namespace

FusedBranches fuse_branches(Trace& trace, Tensor rwkv, Tensor mamba, HybridFusion fusion,
                            double start) {
  const int64_t width = rwkv.dim(2);
  switch (fusion) {
    case HybridFusion::gains: return by_gains(trace, rwkv, mamba);
    case HybridFusion::gate: return by_gate(trace, rwkv, mamba, 1, Initializer::zeros(), start);
    case HybridFusion::channel_gate: {
      const double bound = 0.1 * std::sqrt(6.0 / (3.0 * static_cast<double>(width)));
      return by_gate(trace, rwkv, mamba, width, Initializer::uniform(-bound, bound), start);
    }
    case HybridFusion::projection: {
      const Tensor both = concat(std::array{rwkv, mamba}, 2);
      return {
          projected(trace, "projection", both, width, Initializer::normal(0.02)), rwkv, mamba, {}};
    }
    case HybridFusion::weighted_sum: return by_share(trace, rwkv, mamba);
    case HybridFusion::residual:
      return {rwkv + projected(trace, "mamba_projection", mamba, width, Initializer::normal(0.01)),
              rwkv,
              mamba,
              {}};
  }
  return {};
}

}  // namespace fullbore
