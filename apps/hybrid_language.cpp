#include "apps/hybrid_language.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "apps/language_batches.h"
#include "workloads/hybrid/diagnostics.h"

namespace fullbore {
namespace {

HybridBranch branch(const std::string& name) {
  static const std::map<std::string, HybridBranch> known = {
      {"finch", HybridBranch::finch},
      {"static_decay", HybridBranch::static_decay},
      {"channel_softmax", HybridBranch::channel_softmax}};
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

// The loss, and what evaluations tell of the branches.
Loss told(const Config& config, Trace& trace, const HybridLoss& made) {
  Loss loss(made.loss.mean, made.loss.predictions);
  if (config.hybrid.diagnostics && !trace.training()) loss.metrics = metrics_of(made.result);
  return loss;
}

HybridState state_of(const HybridConfig& model, std::span<const Tensor> states) {
  return states.empty() ? HybridState{} : hybrid_state(model, states);
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
  const std::string identity = fmt::format(
      "hybrid branch={} fusion={} layers={} heads={} width={} context={} mix_rank={} "
      "decay_rank={} inner={} mamba_heads={} states={} convolution={} hidden={} channel_mix={} "
      "dropout={} vocabulary={}",
      model.branch, model.fusion, common.layers, common.heads, common.width, common.context,
      model.mix_rank, model.decay_rank, model.inner, model.mamba_heads, model.states,
      model.convolution, model.hidden, model.channel_mix, common.dropout, common.vocabulary);
  return model.learned_state ? identity + " learned_state=true" : identity;
}

StreamOptions stream_options(const Config& config) {
  const Config::Hybrid::Data& data = config.hybrid.data;
  return {.initial = initial_state_mode(data.initial_state),
          .segments = data.segments,
          .noise = data.state_noise,
          .trainable = config.hybrid.model.learned_state};
}

std::string evaluated_state(const Config& config) {
  if (config.model.name != "hybrid") return "";
  const std::string learned = config.hybrid.model.learned_state ? ", learned" : "";
  return (config.hybrid.data.initial_state == "zero" ? "zero" : "carry") + learned;
}

StreamModel hybrid_streams(const Config& config, const HybridConfig& model) {
  StreamModel streams;
  streams.states = [model](int64_t count) {
    std::vector<StreamTensor> tensors;
    for (const HybridStateTensor& tensor : hybrid_state_tensors(model, count))
      tensors.push_back({tensor.name, tensor.type});
    return tensors;
  };
  streams.loss = [config, model](Trace& trace, std::span<const Tensor> batch,
                                 std::span<const Tensor> states) {
    const HybridInputs inputs{.tokens = batch[0], .state = state_of(model, states)};
    const HybridLoss made =
        hybrid_loss(trace, inputs, batch[1], model, loss_options(config, trace.training()));
    return SegmentLoss{told(config, trace, made), hybrid_tensors(model, made.result.state)};
  };
  streams.logits = [model](Trace& trace, Tensor tokens, std::span<const Tensor> states) {
    const HybridResult made =
        hybrid(trace, {.tokens = tokens, .state = state_of(model, states)}, model);
    LanguageModelHead last = made.head;
    last.hidden = squeeze(slice(last.hidden, 1, tokens.dim(1) - 1, tokens.dim(1)), 1);
    return SegmentLogits{language_model_logits(trace, last), hybrid_tensors(model, made.state)};
  };
  return streams;
}

LossFunction hybrid_loss_function(const Config& config, const HybridConfig& model) {
  if (config.data.batching == "sequences")
    return stream_loss(hybrid_streams(config, model), stream_options(config));
  const bool packed = config.data.batching == "packed";
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const HybridInputs inputs{.tokens = batch[0],
                              .resets = packed ? document_starts(batch[2]) : Tensor()};
    return told(
        config, trace,
        hybrid_loss(trace, inputs, batch[1], model, loss_options(config, trace.training())));
  };
}

}  // namespace fullbore
