#include "workloads/hybrid/hybrid_language.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "workloads/hybrid/bands.h"
#include "workloads/hybrid/diagnostics.h"
#include "workloads/hybrid/hybrid_eval.h"
#include "workloads/hybrid/hybrid_keys.h"

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
  if (hybrid_keys(config).diagnostics && !trace.training()) loss.metrics = metrics_of(made.result);
  return loss;
}

/// "carry": what evaluations begin segments with, for people.
std::string evaluated_state(const Config& config) {
  const std::string learned = hybrid_keys(config).model.learned_state ? ", learned" : "";
  return (hybrid_keys(config).data.initial_state == "zero" ? "zero" : "carry") + learned;
}

/// Both projections of the Mamba branch, and of the feed-forward layer; the least of the other branch.
double matrix_elements(const Config& config) {
  const HybridKeys::Model& model = hybrid_keys(config).model;
  const auto width = static_cast<double>(text_keys(config).model.width);
  return static_cast<double>(text_keys(config).model.layers) *
         (2 * width * width + 3 * width * static_cast<double>(model.inner) +
          2 * width * static_cast<double>(model.hidden));
}

std::string figure_text(const std::string& name, double value) {
  if (name != "rwkv_to_mamba_gradient") return "";
  return fmt::format("R/M {:.3g} [{}]", value, band_name(gradient_ratio_band(value)));
}

/// That specification wants the verdict unchanged, and names no margin. A ratio of one stays OK, [1/3, 3], at twice
/// and at half of it.
QualityMetrics branch_quality(const Config&) {
  return {
      {.name = "branch_ratio",
       .unit = "ln",
       .better = Better::same,
       .margin = std::log(2.0),
       .source = "specification of hybrid-lm, section 6.2: the verdict unchanged; twice or half",
       .recorded = "rwkv_to_mamba_gradient",
       .scale = MetricScale::logarithmic,
       .is_of_training = true}};
}

// A gate decides between branches: it is small, and an error in it moves all that it lets through.
std::set<std::string> fusion_gates(const Config& config) {
  std::set<std::string> names;
  for (int64_t layer = 0; layer < text_keys(config).model.layers; ++layer)
    names.insert(fmt::format("layers.{}.gate.weight", layer));
  return names;
}

HybridState state_of(const HybridConfig& model, std::span<const Tensor> states) {
  return states.empty() ? HybridState{} : hybrid_state(model, states);
}

}  // namespace

HybridConfig hybrid_config(const Config& config, int64_t tokens) {
  const TextKeys::Model& common = text_keys(config).model;
  const HybridKeys::Model& model = hybrid_keys(config).model;
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
          .dropout = config.model.dropout,
          .rwkv_lm_init = model.rwkv_lm_init,
          .recorded_init = model.recorded_init};
}

std::string hybrid_identity(const Config& config) {
  const TextKeys::Model& common = text_keys(config).model;
  const HybridKeys::Model& model = hybrid_keys(config).model;
  const std::string identity = fmt::format(
      "hybrid branch={} fusion={} layers={} heads={} width={} context={} mix_rank={} "
      "decay_rank={} inner={} mamba_heads={} states={} convolution={} hidden={} channel_mix={} "
      "dropout={} vocabulary={}",
      model.branch, model.fusion, common.layers, common.heads, common.width, common.context,
      model.mix_rank, model.decay_rank, model.inner, model.mamba_heads, model.states,
      model.convolution, model.hidden, model.channel_mix, config.model.dropout, common.vocabulary);
  return model.learned_state ? identity + " learned_state=true" : identity;
}

TbpttOptions tbptt_options(const Config& config) {
  const HybridKeys::Data& data = hybrid_keys(config).data;
  return {.initial = initial_state_mode(data.initial_state),
          .segments = data.segments,
          .noise = data.state_noise,
          .trainable = hybrid_keys(config).model.learned_state};
}

RecurrentModel hybrid_recurrence(const Config& config, const HybridConfig& model) {
  RecurrentModel sequences;
  sequences.states = [model](int64_t count) {
    std::vector<RecurrentTensor> tensors;
    for (const HybridStateTensor& tensor : hybrid_state_tensors(model, count))
      tensors.push_back({tensor.name, tensor.type});
    return tensors;
  };
  sequences.loss = [config, model](Trace& trace, std::span<const Tensor> batch,
                                   std::span<const Tensor> states) {
    const HybridInputs inputs{.tokens = batch[0], .state = state_of(model, states)};
    const HybridLoss made =
        hybrid_loss(trace, inputs, batch[1], model, loss_options(config, trace.training()));
    return SegmentLoss{told(config, trace, made), hybrid_tensors(model, made.result.state)};
  };
  sequences.logits = [model](Trace& trace, Tensor tokens, std::span<const Tensor> states) {
    const HybridResult made =
        hybrid(trace, {.tokens = tokens, .state = state_of(model, states)}, model);
    LanguageModelHead last = made.head;
    last.hidden = squeeze(slice(last.hidden, 1, tokens.dim(1) - 1, tokens.dim(1)), 1);
    return SegmentLogits{language_model_logits(trace, last), hybrid_tensors(model, made.state)};
  };
  return sequences;
}

LossFunction hybrid_loss_function(const Config& config, const HybridConfig& model) {
  if (text_keys(config).data.batching == "sequences")
    return tbptt_loss(hybrid_recurrence(config, model), tbptt_options(config));
  const bool packed = text_keys(config).data.batching == "packed";
  return [=](Trace& trace, std::span<const Tensor> batch) {
    const HybridInputs inputs{.tokens = batch[0],
                              .resets = packed ? document_starts(batch[2]) : Tensor()};
    return told(
        config, trace,
        hybrid_loss(trace, inputs, batch[1], model, loss_options(config, trace.training())));
  };
}

TextModel hybrid_text_model() {
  TextModel model;
  model.name = "hybrid";
  model.loss = [](const Config& config, int64_t tokens) {
    return hybrid_loss_function(config, hybrid_config(config, tokens));
  };
  model.decode = [](const Config& config, int64_t tokens) {
    return recurrent_decode(hybrid_recurrence(config, hybrid_config(config, tokens)),
                            hybrid_keys(config).model.learned_state);
  };
  model.hidden = [](const Config& config, int64_t tokens) {
    return [sizes = hybrid_config(config, tokens)](Trace& trace, Tensor inputs) {
      return hybrid(trace, {.tokens = inputs}, sizes).head;
    };
  };
  model.identity = hybrid_identity;
  model.matrix_elements = matrix_elements;
  model.is_recurrent = true;
  model.quality = branch_quality;
  model.weight_keys = {"model.heads", "model.mamba_heads", "model.states"};
  model.token_table = "embed.weight";
  model.keeps_f32 = fusion_gates;
  model.segments = [](const Config& config) { return hybrid_keys(config).data.segments; };
  model.figure = figure_text;
  model.evaluated_state = evaluated_state;
  model.add_eval = add_hybrid_eval;
  return model;
}

}  // namespace fullbore
