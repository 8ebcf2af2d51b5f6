#include "workloads/hybrid/diagnostics.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

Tensor mean(Tensor x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? x : reduce_mean(x, axes);
}

Tensor variance(Tensor x) {
  const Tensor centred = x - mean(x);
  return mean(centred * centred);
}

Tensor share(Tensor condition) { return mean(cast(condition, DType::f32)); }

// Figures of a layer, by names within it.
void add_layer(const FusedBranches& branches, const std::string& layer,
               std::vector<HybridFigure>& figures) {
  const auto add = [&](const char* name, Tensor value) {
    figures.push_back({fmt::format("{}.{}", layer, name), value});
  };
  add("variance/rwkv", variance(branches.rwkv));
  add("variance/mamba", variance(branches.mamba));
  if (branches.rwkv_gain.valid()) {
    add("gain/rwkv", mean(abs(branches.rwkv_gain)));
    add("gain/mamba", mean(abs(branches.mamba_gain)));
  }
  if (branches.share.valid()) add("share/rwkv", branches.share);
  if (!branches.gate.valid()) return;
  add("gate/mean", mean(branches.gate));
  add("gate/deviation", sqrt(variance(branches.gate)));
  add("gate/least", reduce_min(branches.gate, {0, 1, 2}));
  add("gate/most", reduce_max(branches.gate, {0, 1, 2}));
  add("gate/open", share(greater(branches.gate, 0.95)));
  add("gate/shut", share(less(branches.gate, 0.05)));
}

}  // namespace

std::vector<HybridFigure> hybrid_figures(const HybridResult& result) {
  std::vector<HybridFigure> figures;
  for (size_t layer = 0; layer < result.branches.size(); ++layer)
    add_layer(result.branches[layer], fmt::format("layers.{}", layer), figures);
  const FusedBranches& last = result.branches.back();
  const Tensor logarithms = log_softmax(last.rwkv + last.mamba);
  const Tensor entropies = -reduce_sum(exp(logarithms) * logarithms, {2});
  figures.push_back({"channel_entropy", mean(entropies)});
  return figures;
}

}  // namespace fullbore
