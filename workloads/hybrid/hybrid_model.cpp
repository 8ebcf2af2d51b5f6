#include "workloads/hybrid/hybrid_model.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"
#include "workloads/hybrid/channel_softmax.h"
#include "workloads/hybrid/initial.h"

namespace fullbore {
namespace {

// A layer of the model, and what it is made with.
struct Layer {
  const HybridConfig& config;
  int64_t number;
  HybridLayerState before;
  Tensor resets;
  nn::TimeMixInitializers initializers;

  // Where the branch begins anew; before every token of x [B,T,C] if its state is what is left out.
  Tensor resets_of(HybridAblation state, Tensor x) const {
    if (config.ablation != state) return resets;
    return full(x.builder(), {DType::boolean, {x.dim(0), x.dim(1)}}, 1);
  }
};

Tensor rwkv_branch(Trace& trace, const Layer& layer, Tensor x, HybridLayerState& after) {
  const HybridConfig& config = layer.config;
  const Tensor resets = layer.resets_of(HybridAblation::rwkv_state, x);
  if (config.branch == HybridBranch::channel_softmax)
    return channel_softmax_branch(trace, "rwkv", x, config.heads);
  if (config.branch == HybridBranch::static_decay) {
    const nn::StaticMixResult made = nn::rwkv6_static_mix(trace, "rwkv", x,
                                                          {.heads = config.heads,
                                                           .chunk = config.chunk,
                                                           .memory = layer.before.time_mix.memory,
                                                           .resets = resets});
    after.time_mix.memory = made.memory;
    return made.y;
  }
  const nn::TimeMixResult made = nn::rwkv6_time_mix(trace, "rwkv", x,
                                                    {.heads = config.heads,
                                                     .mix_rank = config.mix_rank,
                                                     .decay_rank = config.decay_rank,
                                                     .chunk = config.chunk,
                                                     .initializers = layer.initializers,
                                                     .state = layer.before.time_mix,
                                                     .resets = resets});
  after.time_mix = made.state;
  return made.y;
}

Tensor mamba_branch(Trace& trace, const Layer& layer, Tensor x, HybridLayerState& after) {
  const HybridConfig& config = layer.config;
  const Tensor resets = layer.resets_of(HybridAblation::mamba_state, x);
  if (config.branch == HybridBranch::channel_softmax) {
    const nn::Mamba2Result made = mamba1(trace, "mamba", x,
                                         {.inner = config.inner,
                                          .states = config.states,
                                          .convolution = config.convolution,
                                          .state = layer.before.mamba,
                                          .resets = resets});
    after.mamba = made.state;
    return made.y;
  }
  const nn::Mamba2Result made = nn::mamba2(trace, "mamba", x,
                                           {.inner = config.inner,
                                            .heads = config.mamba_heads,
                                            .states = config.states,
                                            .convolution = config.convolution,
                                            .chunk = config.chunk,
                                            .draws_start = config.recorded_init,
                                            .state = layer.before.mamba,
                                            .resets = resets});
  after.mamba = made.state;
  return made.y;
}

Tensor feed_forward(Trace& trace, const Layer& layer, Tensor x, HybridLayerState& after) {
  const HybridConfig& config = layer.config;
  if (config.channel_mix) {
    const nn::ChannelMixResult made = nn::rwkv6_channel_mix(trace, "channel_mix", x,
                                                            {.width = config.hidden,
                                                             .previous = layer.before.channel_mix,
                                                             .resets = layer.resets,
                                                             .mix = layer.initializers.mix_k});
    after.channel_mix = made.previous;
    return made.y;
  }
  const nn::LinearOptions plain{.bias = false};
  const Tensor hidden = nn::linear(trace, "up", x, config.hidden, plain);
  return nn::linear(trace, "down", gelu(hidden), config.width, plain);
}

// x + fuse(rwkv(norm(x)), mamba(norm(x))), then x + feed_forward(norm(x)); x [B,T,C].
Tensor block(Trace& trace, const Layer& layer, Tensor x, HybridResult& result) {
  const HybridConfig& config = layer.config;
  const Scope scope(trace, fmt::format("layers.{}", layer.number));
  HybridLayerState after;
  const Tensor n = nn::rms_norm(trace, "norm", x);
  Tensor rwkv = rwkv_branch(trace, layer, n, after);
  Tensor mamba = mamba_branch(trace, layer, n, after);
  if (config.ablation == HybridAblation::rwkv) rwkv = zeros_like(rwkv);
  if (config.ablation == HybridAblation::mamba) mamba = zeros_like(mamba);
  const FusedBranches fused =
      fuse_branches(trace, rwkv, mamba, {config.fusion, config.gate_start, config.recorded_init});
  x = x + nn::dropout(trace, fused.y, config.dropout);
  const Tensor h = feed_forward(trace, layer, nn::rms_norm(trace, "hidden_norm", x), after);
  result.state.layers.push_back(after);
  result.branches.push_back(fused);
  return x + nn::dropout(trace, h, config.dropout);
}

void require(const HybridInputs& inputs, const HybridConfig& config) {
  if (inputs.tokens.rank() != 2)
    throw UsageError(
        fmt::format("hybrid: needs tokens [B,T], got {}", inputs.tokens.type().text()));
  const size_t layers = inputs.state.layers.size();
  if (layers != 0 && layers != static_cast<size_t>(config.layers))
    throw UsageError(
        fmt::format("hybrid: a state of {} layers for a model of {}", layers, config.layers));
}

}  // namespace

HybridResult hybrid(Trace& trace, const HybridInputs& inputs, const HybridConfig& config) {
  require(inputs, config);
  const Tensor table = nn::embedding_table(trace, "embed", config.vocabulary, config.width);
  Tensor x = nn::dropout(trace, gather(table, inputs.tokens), config.dropout);
  HybridResult result;
  for (int64_t number = 0; number < config.layers; ++number) {
    const Layer layer{config, number,
                      inputs.state.layers.empty()
                          ? HybridLayerState{}
                          : inputs.state.layers[static_cast<size_t>(number)],
                      inputs.resets, time_mix_initializers(config, number)};
    x = block(trace, layer, x, result);
  }
  result.head = {nn::rms_norm(trace, "final_norm", x), table};
  return result;
}

HybridLoss hybrid_loss(Trace& trace, const HybridInputs& inputs, Tensor targets,
                       const HybridConfig& config, const LanguageModelLossOptions& options) {
  HybridResult result = hybrid(trace, inputs, config);
  const LanguageModelLoss loss = language_model_loss(trace, result.head, targets, options);
  return {loss, std::move(result)};
}

}  // namespace fullbore
