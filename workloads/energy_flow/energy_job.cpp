#include "workloads/energy_flow/energy_job.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/ir/fp32_scope.h"
#include "fullbore/nn/modules.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/flow_draws.h"
#include "workloads/energy_flow/flow_lattice.h"
#include "workloads/energy_flow/surface_mapper.h"

namespace fullbore::energy_flow {
namespace {

constexpr uint64_t kSteadySteps = 100;
constexpr uint64_t kStepsOfDecay = 10;
constexpr double kDecay = 0.9;

/// The loss and its metrics, by name: f32 [] each.
using Sums = std::vector<std::pair<std::string, Tensor>>;

/// StepSettings among the fields of a batch.
struct Settings {
  Tensor displacement_scale, noise, z_bias, z_bias_per_age;
};

Tensor mean_square(Tensor a, Tensor b) {
  const Fp32Scope island(a.builder());
  const Tensor difference = a - b;
  return reduce_mean(difference * difference, {0, 1});
}

/// Fields of pairs, in the order of PairBatches.
struct Examples {
  Tensor input, target;                ///< [B,W]
  Tensor input_tokens, target_tokens;  ///< i32 [B,T], with a text bridge
};

/// Writes one forward pass.
class Pass {
 public:
  Pass(Trace& trace, const Config& config, const TextTokens& form)
      : trace_(trace),
        config_(config),
        form_(form),
        keys_(energy_keys(config)),
        dropout_(config.model.dropout),
        parts_(config.engine.accumulate *
               std::max<int64_t>(1, config.engine.parallel_microbatches)),
        lattice_(lattice_options(config)),
        sizes_(network_sizes(config)) {}

  Loss loss(std::span<const Tensor> batch) {
    declare();
    const Settings settings{batch[2], batch[3], batch[4], batch[5]};
    Examples examples{batch[0], batch[1], {}, {}};
    if (has_bridge(config_)) {
      examples.input_tokens = batch[6];
      examples.target_tokens = batch[7];
    }
    // A step's microbatches come one by one already.
    const int64_t parts = trace_.training() ? 1 : parts_;
    const Sums sums = parts > 1 && batch[0].dim(0) % parts == 0
                          ? mean_of_parts(examples, settings, parts)
                          : run(examples, settings);
    Loss loss(sums.front().second);
    for (size_t i = 1; i < sums.size(); ++i)
      loss.metrics.push_back({sums[i].first, sums[i].second});
    return loss;
  }

  FlowRun flows(const LatticeOptions& lattice, Tensor start) {
    lattice_ = lattice;
    networks_ = declare_networks(trace_, sizes_);
    const StepSettings last = final_settings(config_);
    const auto number = [&](double value) {
      return full(trace_.builder(), {DType::f32, {}}, value);
    };
    const Settings settings{number(last.displacement_scale), number(last.noise),
                            number(last.z_bias), number(last.z_bias_per_age)};
    return run_flows(lattice_, rule(networks_, settings), start, sizes_.carrier_layers,
                     sizes_.carrier_hidden);
  }

 private:
  DropoutBy dropout_by() {
    return [this](Tensor x, double probability) { return nn::dropout(trace_, x, probability); };
  }

  void declare() {
    const int64_t cells = lattice_.surface(), width = keys_.model.embedding_width;
    mapper_ = declare_mapper(trace_, width, cells, keys_.model.train_mapper);
    networks_ = declare_networks(trace_, sizes_);
    if (keys_.loss.collector_weight > 0) collector_ = declare_collector(trace_, width, cells);
  }

  Sums run(const Examples& examples, const Settings& settings) {
    const bool drops = trace_.training() && keys_.model.train_mapper;
    const Tensor start =
        map_to_surface(mapper_, examples.input, drops ? dropout_by() : DropoutBy());
    const Tensor target = stop_gradient(map_to_surface(mapper_, examples.target));
    const FlowRun flows = run_flows(lattice_, rule(networks_, settings), start,
                                    sizes_.carrier_layers, sizes_.carrier_hidden);
    const Tensor surface_loss = mean_square(flows.surface, target);
    Sums sums = {{"loss", surface_loss}};
    if (collector_) {
      const Tensor collected =
          collect(*collector_, flows.surface, trace_.training() ? dropout_by() : DropoutBy());
      const Tensor collector_loss = mean_square(collected, examples.target);
      sums[0].second = sums[0].second + keys_.loss.collector_weight * collector_loss;
      sums.emplace_back("collector_loss", collector_loss);
    }
    if (has_bridge(config_)) add_texts(examples, start, flows.surface, sums);
    sums.emplace_back("surface_loss", surface_loss);
    sums.emplace_back("input_loss", mean_square(start, target));
    add_counts(flows, sums);
    return sums;
  }

  void add_texts(const Examples& examples, Tensor start, Tensor surface, Sums& sums) {
    const EncodedTexts encoded = encode_texts(trace_, config_, form_, examples.input_tokens);
    const bool tells_surface = keys_.bridge.encoder != "dilated";
    const Tensor wanted = stop_gradient(tells_surface ? start : examples.input);
    const Tensor encoder_loss = mean_square(encoded.prediction, wanted);
    const DecoderLoss decoder =
        decoder_loss(trace_, config_, form_, surface, examples.target_tokens);
    sums[0].second =
        sums[0].second +
        keys_.loss.text_weight * (encoder_loss + keys_.loss.decoder_weight * decoder.loss.mean);
    sums.emplace_back("encoder_loss", encoder_loss);
    sums.emplace_back("decoder_loss", decoder.loss.mean);
    sums.emplace_back("token_accuracy", decoder.accuracy);
  }

  // As a step's microbatches do: more samples at once may begin with more flows than there is capacity for.
  Sums mean_of_parts(const Examples& whole, const Settings& settings, int64_t parts) {
    const auto divided = [&](Tensor x) { return reshape(x, {parts, x.dim(0) / parts, x.dim(1)}); };
    std::vector<std::string> names;
    std::vector<Tensor> sliced = {divided(whole.input), divided(whole.target)};
    if (has_bridge(config_))
      for (const Tensor& tokens : {whole.input_tokens, whole.target_tokens})
        sliced.push_back(divided(tokens));
    const LoopResult result = fullbore::loop(
        trace_.builder(), {}, sliced, {.iterations = parts}, [&](const LoopBody& body) {
          names.clear();
          IterationResults values;
          Examples part{body.slices[0], body.slices[1], {}, {}};
          if (has_bridge(config_)) {
            part.input_tokens = body.slices[2];
            part.target_tokens = body.slices[3];
          }
          for (const auto& [name, value] : run(part, settings)) {
            names.push_back(name);
            values.stacked.push_back(value);
          }
          return values;
        });
    Sums means;
    for (size_t i = 0; i < names.size(); ++i)
      means.emplace_back(names[i], reduce_mean(result.stacked[i], {0}));
    return means;
  }

  FlowRule rule(const NetworkWeights& networks, const Settings& settings) {
    FlowNoise noise;
    const bool noisy = std::max(keys_.lattice.noise, keys_.lattice.final_noise) > 0;
    if (trace_.training() && noisy) {
      const FlowDraws draws(trace_.random(), lattice_.most_steps());
      const Tensor deviation = settings.noise;
      const bool on_z = keys_.lattice.noise_on_z;
      noise = [draws, deviation, on_z](const Flows& flows) {
        const DType dtype = flows.position.dtype();
        const Tensor drawn = draws.normals(flows, dtype) * cast(deviation, dtype);
        if (on_z) return drawn;
        const Tensor parts[] = {slice(drawn, 1, 0, 2), zeros_like(slice(drawn, 1, 2, 3))};
        return concat(parts, 1);
      };
    }
    lattice_.noise = 1;  // the draws have their deviation already
    if (lattice_.mode == FlowMode::relative) {
      const bool scales =
          keys_.lattice.displacement_scale != 1 || keys_.lattice.least_displacement_scale != 1;
      return relative_rule(lattice_, networks, scales ? settings.displacement_scale : Tensor(),
                           noise);
    }
    std::function<Tensor(const Flows&)> bias;
    if (keys_.lattice.z_bias > 0 || keys_.lattice.z_bias_per_age > 0)
      bias = [settings](const Flows& flows) {
        const DType dtype = flows.position.dtype();
        return cast(settings.z_bias, dtype) +
               cast(flows.age, dtype) * cast(settings.z_bias_per_age, dtype);
      };
    return absolute_rule(lattice_, networks, bias, noise, flow_dropout());
  }

  // A site of its own for each call that predict() makes, in their order.
  FlowDropout flow_dropout() {
    if (!trace_.training() || dropout_ == 0) return {};
    std::vector<FlowDraws> sites;
    const int64_t calls = 4 + sizes_.carrier_layers - 1;  // two neuron layers, two heads
    for (int64_t i = 0; i < calls; ++i) sites.emplace_back(trace_.random(), lattice_.most_steps());
    return [sites, next = std::make_shared<size_t>(0), probability = dropout_](const Flows& flows,
                                                                               Tensor x) {
      const FlowDraws& site = sites[(*next)++ % sites.size()];
      return site.dropout(flows, x, probability);
    };
  }

  void add_counts(const FlowRun& run, Sums& sums) const {
    const auto number = [](Tensor count) { return cast(count, DType::f32); };
    const Tensor totals = reduce_sum(run.counts, {0});
    const auto sum = [&](FlowCount which) {
      const auto column = static_cast<int64_t>(which);
      return squeeze(slice(totals, 0, column, column + 1), 0);
    };
    Tensor dead = run.created * 0.0;
    if (!run.causes.empty())
      dead = reduce_sum(slice(totals, 0, kFlowCounts, kFlowCounts + std::ssize(run.causes)), {0});
    const Tensor completed = sum(FlowCount::exits) + sum(FlowCount::projected);
    sums.emplace_back("steps", number(run.executed));
    sums.emplace_back("created", number(run.created));
    sums.emplace_back("spawned", number(sum(FlowCount::made)));
    sums.emplace_back("dropped", number(run.dropped));
    sums.emplace_back("dead", number(dead));
    sums.emplace_back("completed", number(completed) / number(run.created));
    sums.emplace_back("active", number(run.active));
    // Where samples end by themselves and nobody counts what is left of them, there is no account.
    if (lattice_.stop.on && lattice_.stop.per_sample && !lattice_.project_on_stop) return;
    const Tensor left = lattice_.project_on_stop ? run.projected_on_stop : run.active;
    const Tensor lost = abs(run.created - completed - dead - left) +
                        abs(run.created - sum(FlowCount::made) - static_cast<double>(run.injected));
    sums.emplace_back("unaccounted", number(lost));
  }

  Trace& trace_;
  const Config& config_;
  TextTokens form_;
  const EnergyKeys& keys_;
  double dropout_;
  int64_t parts_;
  LatticeOptions lattice_;
  NetworkSizes sizes_;
  MapperWeights mapper_;
  NetworkWeights networks_;
  std::optional<CollectorWeights> collector_;
};

}  // namespace

LatticeOptions lattice_options(const Config& config) {
  const EnergyKeys::Lattice& keys = energy_keys(config).lattice;
  LatticeOptions options;
  options.mode = keys.mode == "relative" ? FlowMode::relative : FlowMode::absolute;
  options.width = keys.width;
  options.height = keys.height;
  options.depth = keys.depth;
  options.capacity = keys.capacity;
  options.inject_overflow =
      keys.inject_overflow == "error" ? InjectOverflow::error : InjectOverflow::truncate;
  options.spawn_threshold = keys.spawn_threshold;
  options.most_spawned = keys.most_spawned;
  options.energy_threshold = keys.energy_threshold;
  options.project_on_stop = keys.project_on_stop;
  options.stop = {.on = keys.early_stop,
                  .threshold = keys.stop_threshold,
                  .patience = keys.stop_patience,
                  .min_steps = keys.stop_min_steps,
                  .of_initial = keys.stop_denominator == "initial",
                  .per_sample = keys.stop_scope == "sample"};
  const bool softmax = keys.readout == "auto" ? keys.mode == "relative" : keys.readout == "softmax";
  options.readout = softmax ? Readout::softmax : Readout::linear;
  options.importance_gradient =
      keys.importance_gradient == "auto" ? softmax : keys.importance_gradient == "full";
  options.segments = keys.segments;
  options.tile_rows = keys.tile_rows;
  return options;
}

NetworkSizes network_sizes(const Config& config) {
  const EnergyKeys::Model& keys = energy_keys(config).model;
  return {.mode = lattice_options(config).mode,
          .neuron_hidden = keys.neuron_hidden,
          .neuron_outputs = keys.neuron_outputs,
          .carrier_hidden = keys.carrier_hidden,
          .carrier_layers = keys.carrier_layers,
          .head_hidden = keys.head_hidden,
          .position_z_bias = keys.position_z_bias};
}

StepSettings step_settings(const Config& config, uint64_t step) {
  const EnergyKeys::Lattice& keys = energy_keys(config).lattice;
  const double rest =
      std::max(0.0, 1 - static_cast<double>(step) / static_cast<double>(keys.curriculum_steps));
  StepSettings settings;
  settings.displacement_scale = keys.displacement_scale;
  if (step >= kSteadySteps) {
    const uint64_t decays = (step - kSteadySteps) / kStepsOfDecay;
    settings.displacement_scale =
        std::max(keys.least_displacement_scale,
                 keys.displacement_scale * std::pow(kDecay, static_cast<double>(decays)));
  }
  settings.noise = keys.final_noise + (keys.noise - keys.final_noise) * rest;
  settings.z_bias = keys.z_bias * rest;
  settings.z_bias_per_age = keys.z_bias_per_age * rest;
  return settings;
}

StepSettings final_settings(const Config& config) {
  const EnergyKeys::Lattice& keys = energy_keys(config).lattice;
  return {.displacement_scale = keys.least_displacement_scale,
          .noise = keys.final_noise,
          .z_bias = 0,
          .z_bias_per_age = 0};
}

FlowRun trained_flows(Trace& trace, const Config& config, const LatticeOptions& lattice,
                      Tensor start) {
  return Pass(trace, config, {}).flows(lattice, start);
}

LossFunction energy_loss(const Config& config, const TextTokens& form) {
  return [config, form](Trace& trace, std::span<const Tensor> batch) {
    return Pass(trace, config, form).loss(batch);
  };
}

}  // namespace fullbore::energy_flow
