#include "workloads/hybrid/fusion.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"

namespace fullbore {
namespace {

constexpr double kRwkvGain = 0.7, kMambaGain = 0.3;
constexpr double kRecorded = 0.02;  // deviation of every linear layer in the recorded runs

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
  const Tensor of_rwkv = gain("rwkv_gain", kRwkvGain);
  const Tensor of_mamba = gain("mamba_gain", kMambaGain);
  return {.y = of_rwkv * rwkv + of_mamba * mamba,
          .rwkv = rwkv,
          .mamba = mamba,
          .rwkv_gain = of_rwkv,
          .mamba_gain = of_mamba};
}

// Shares of both that depend on both, `outputs` of them for a token; the gate starts open by `start`.
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
  return {.y = gate * rwkv + (1.0 - gate) * mamba, .rwkv = rwkv, .mamba = mamba, .gate = gate};
}

FusedBranches by_channel_gate(Trace& trace, Tensor rwkv, Tensor mamba,
                              const FusionOptions& options) {
  const int64_t width = rwkv.dim(2);
  if (options.recorded_init)
    return by_gate(trace, rwkv, mamba, width, Initializer::normal(kRecorded), 0.5);
  const double bound = 0.1 * std::sqrt(6.0 / (3.0 * static_cast<double>(width)));
  return by_gate(trace, rwkv, mamba, width, Initializer::uniform(-bound, bound),
                 options.gate_start);
}

FusedBranches by_projection(Trace& trace, Tensor rwkv, Tensor mamba) {
  const Tensor both = concat(std::array{rwkv, mamba}, 2);
  const Tensor y =
      projected(trace, "projection", both, rwkv.dim(2), Initializer::normal(kRecorded));
  return {.y = y, .rwkv = rwkv, .mamba = mamba};
}

FusedBranches as_residual(Trace& trace, Tensor rwkv, Tensor mamba, double deviation) {
  const Tensor more =
      projected(trace, "mamba_projection", mamba, rwkv.dim(2), Initializer::normal(deviation));
  return {.y = rwkv + more, .rwkv = rwkv, .mamba = mamba};
}

FusedBranches by_share(Trace& trace, Tensor rwkv, Tensor mamba) {
  const Tensor share = trace.parameter("share", {}, Initializer::given({0.5}));
  return {.y = share * rwkv + (1.0 - share) * mamba, .rwkv = rwkv, .mamba = mamba, .share = share};
}

}  // namespace

FusedBranches fuse_branches(Trace& trace, Tensor rwkv, Tensor mamba, const FusionOptions& options) {
  const bool recorded = options.recorded_init;
  switch (options.rule) {
    case HybridFusion::gains: return by_gains(trace, rwkv, mamba);
    case HybridFusion::gate:
      return by_gate(trace, rwkv, mamba, 1,
                     recorded ? Initializer::normal(kRecorded) : Initializer::zeros(),
                     options.gate_start);
    case HybridFusion::channel_gate: return by_channel_gate(trace, rwkv, mamba, options);
    case HybridFusion::projection: return by_projection(trace, rwkv, mamba);
    case HybridFusion::weighted_sum: return by_share(trace, rwkv, mamba);
    case HybridFusion::residual:
      return as_residual(trace, rwkv, mamba, recorded ? kRecorded : kRecorded / 2);
  }
  FB_CHECK(false, "no such rule of fusion");
}

}  // namespace fullbore
