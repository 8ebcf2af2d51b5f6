#include "apps/hybrid_language.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "apps/language_batches.h"
#include "models/hybrid/diagnostics.h"

namespace fullbore {
namespace {

HybridBranch branch(const std::string& name) {
  static const std::map<std::string, HybridBranch> known = {
      {"finch", HybridBranch::finch},
      {"static_decay", HybridBranch::static_decay},
      {"stand_in", HybridBranch::stand_in}};
  return known.at(name);
}

HybridFusion fusion(const std::string& name) {
  static const std::map<std::string, HybridFusion> known = {
      {"gains", HybridFusion::gains},
      {"gate", HybridFusion::gate},
      {"channel_gate", HybridFusion::channel_gate},
      {"projection", HybridFusion::projection},
      {"weighted_sum", HybridFusion::weighted_sum},
      {"residual", HybridFusion::residual}};
  return known.at(name);
}

// bool [B,T]: where a row of several documents goes on to the next.
Tensor document_starts(Tensor segments) {
  const int64_t length = segments.dim(1);
  const Tensor first = full(segments.builder(), {DType::boolean, {segments.dim(0), 1}}, 0);
  if (length == 1) return first;
  const Tensor changes =
      not_equal(slice(segments, 1, 1, length), slice(segments, 1, 0, length - 1));
  return concat(std::array{first, changes}, 1);
}

std::vector<Metric> metrics_of(const HybridResult& result) {
  std::vector<Metric> metrics;
  for (const HybridFigure& figure : hybrid_figures(result))
    metrics.push_back({figure.name, figure.value});
  return metrics;
}

}  // namespace

HybridConfig hybrid_config(const Config& config, int64_t tokens) {
  const Config::Model& common = config.model;
  const Config::Hybrid::Model& model = config.hybrid.model;
  return {.branch = branch(model.branch),
          .fusion = fusion(model.fusion),
          .vocabulary = table_rows(config, tokens),
          .layers = common.layers,
          .width = common.width,
          .heads = common.heads,
          .mix_rank = model.mix_rank,
          .decay_rank = model.decay_rank,
          .inner = model.inner,
          .mamba_heads = model.mamba_heads,
          .states = model.states,
          .convolution = model.convolution,
          .hidden = model.hidden,
          .channel_mix = model.channel_mix,
          .chunk = model.chunk,
          .gate_start = model.gate_start,
          .dropout = common.dropout,
          .rwkv_lm_init = model.rwkv_lm_init,
          .recorded_init = model.recorded_init};
}

std::string hybrid_identity(const Config& config) {
  const Config::Model& common = config.model;
  const Config::Hybrid::Model& model = config.hybrid.model;
  return fmt::format(
      "hybrid branch={} fusion={} layers={} heads={} width={} context={} mix_rank={} "
      "decay_rank={} inner={} mamba_heads={} states={} convolution={} hidden={} channel_mix={} "
      "dropout={} vocabulary={}",
      model.branch, model.fusion, common.layers, common.heads, common.width, common.context,
      model.mix_rank, model.decay_rank, model.inner, model.mamba_heads, model.states,
      model.convolution, model.hidden, model.channel_mix, common.dropout, common.vocabulary);
}

LossFunction hybrid_loss_function(const Config& config, const HybridConfig& model) {
  const bool packed = config.data.batching == "packed";
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const HybridInputs inputs{.tokens = batch[0],
                              .resets = packed ? document_starts(batch[2]) : Tensor()};
    const HybridLoss made =
        hybrid_loss(trace, inputs, batch[1], model, loss_options(config, trace.training()));
    Loss loss(made.loss.mean, made.loss.predictions);
    if (config.hybrid.diagnostics && !trace.training()) loss.metrics = metrics_of(made.result);
    return loss;
  };
}

}  // namespace fullbore
