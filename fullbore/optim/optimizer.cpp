#include "fullbore/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/random.h"
#include "fullbore/optim/gradient_statistics.h"
#include "fullbore/optim/rounding.h"
#include "fullbore/optim/update_rules.h"

namespace fullbore {
namespace {

// Of a loss: its inverse is a normal number still.
constexpr double kLargestScale = 0x1p100;

const std::vector<std::string> kNorms = {"off", "groups", "parameters"};

void check_choice(const char* what, const std::string& given,
                  const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), given) == choices.end())
    throw UsageError(fmt::format("unknown {} '{}'.{} There are {}.", what, given,
                                 did_you_mean(given, choices), fmt::join(choices, ", ")));
}

Tensor count_state(Trace& trace, const char* name) {
  return trace.state(name, Role::control, {DType::i64, {}}, Initializer::zeros());
}

std::vector<Tensor> tensors_of(const std::vector<Trace::Parameter>& parameters) {
  std::vector<Tensor> tensors;
  for (const Trace::Parameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

// Are rows of the value looked up, as of an embedding, here or in a loop?
bool is_table(const Graph& graph, Value value) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    if (node.op == op::gather && node.inputs[0] == value) return true;
    if (!is_loop(node)) return false;
    const LoopShape shape(node);
    for (size_t i = static_cast<size_t>(shape.first_captured()); i < node.inputs.size(); ++i) {
      // The body's inputs begin with the index, the node's with the count if it has one.
      const size_t inner = i + 1 - static_cast<size_t>(shape.first_carried());
      if (node.inputs[i] == value && is_table(*node.body, node.body->inputs()[inner].value))
        return true;
    }
    return false;
  });
}

/// One step's update under construction.
class Update {
 public:
  Update(Trace& trace, const OptimizerOptions& options)
      : trace_(trace), options_(options), parameters_(trace.parameters()) {
    check_choice("optimizer", options.name, optimizer_names());
    check_choice("choice of norms", options.norms, kNorms);
    if (parameters_.empty())
      throw UsageError(fmt::format("optimizer: the trace '{}' has no parameters",
                                   trace.builder().graph().name()));
    std::vector<std::string> names;
    for (const Trace::Parameter& parameter : parameters_) names.push_back(parameter.name);
    group_of_ = assign_groups(names, options.groups);
  }

  /// Empty without loss scaling.
  Tensor loss_scale() {
    if (options_.loss_scaling.initial > 0 && !scale_.valid())
      scale_ = trace_.state("loss_scale", Role::control, {DType::f32, {}},
                            Initializer::given({options_.loss_scaling.initial}));
    return scale_;
  }
  // Scales are powers of two unless somebody wants it otherwise: nothing is rounded.
  std::vector<Tensor> unscaled(std::vector<Tensor> gradients) const {
    if (scale_.valid())
      for (Tensor& each : gradients) each = each * cast(1.0 / scale_, each.dtype());
    return gradients;
  }

  std::vector<Tensor> gradients_of(Tensor loss) {
    const std::vector<Tensor> wanted = tensors_of(parameters_);
    const Tensor scale = loss_scale();
    return unscaled(gradient(scale.valid() ? loss * cast(scale, loss.dtype()) : loss, wanted));
  }

  /// Of the whole batch, unclipped: decides whether the step counts.
  void begin(Tensor loss, std::vector<Tensor> gradients) {
    gradients_ = std::move(gradients);
    loss_ = loss;
    if (options_.name == "muon")  // which alone asks
      for (const Trace::Parameter& parameter : parameters_)
        is_table_.push_back(is_table(trace_.builder().graph(), parameter.tensor.value()));
    norm_ = global_norm(gradients_);
    finite_ = logical_and(is_finite(norm_), is_finite(loss));
  }

  /// A new value of State, unless the step is skipped. It may come in another shape.
  void keep(Tensor state, Tensor next) {
    const Tensor kept = select(finite_, next, reshape(state, next.shape()));
    trace_.update(state, reshape(kept, state.shape()));
  }

  OptimizerResult finish() {
    const Tensor updates = count_state(trace_, "updates");
    const Tensor rate = learning_rate(updates);
    OptimizerResult result{
        cast(rate, DType::f32), norm_, cast(logical_not(finite_), DType::f32), {}};
    add_norms(result);
    add_ratios(result);
    if (scale_.valid()) {
      result.metrics.emplace_back("loss_scale", scale_);
      adapt_scale();
    }
    shape_in_blocks();
    clip();
    const UpdateContext context{trace_,
                                rate,
                                cast(updates, DType::f64) + 1.0,
                                options_.beta1,
                                options_.beta2,
                                options_.epsilon,
                                options_.momentum,
                                options_.nesterov,
                                options_.storage.moments,
                                [this](Tensor state, Tensor next) { keep(state, next); }};
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor next = next_value(context, i);
      keep(parameters_[i].tensor, next);
      if (options_.ema_decay > 0) keep_ema(parameters_[i], next, context.count);
    }
    keep(updates, updates + 1.0);
    const Tensor step = count_state(trace_, "step");
    trace_.update(step, step + 1.0);
    return result;
  }

 private:
  Tensor learning_rate(Tensor updates) {
    const Tensor rate = planned_rate(updates);
    if (!options_.adjustable) return rate;
    return rate *
           trace_.state(kRateFactor, Role::control, {DType::f64, {}}, Initializer::given({1.0}));
  }

  Tensor planned_rate(Tensor updates) {
    const Tensor rate = scheduled_learning_rate(updates, options_.schedule);
    if (options_.schedule.schedule != "plateau") return rate;
    const Tensor factor = plateau_factor(trace_, loss_, options_.plateau,
                                         [this](Tensor state, Tensor next) { keep(state, next); });
    // A warm-up that begins below the floor is not lifted to it.
    return minimum(rate, maximum(rate * factor, options_.schedule.minimum_learning_rate));
  }

  void adapt_scale() {
    const LossScaling& scaling = options_.loss_scaling;
    const Tensor finite_steps = count_state(trace_, "finite_steps");
    const Tensor next = finite_steps + 1.0;
    const Tensor grows = less_equal(static_cast<double>(scaling.interval), next);
    // Gradients that are zero let it grow for ever, and what is infinite falls no more.
    const Tensor grown = select(grows, minimum(scale_ * scaling.growth, kLargestScale), scale_);
    trace_.update(scale_, maximum(select(finite_, grown, scale_ * scaling.backoff), 1.0));
    trace_.update(finite_steps, select(logical_and(finite_, logical_not(grows)), next, 0.0));
  }

  // Where moments are in blocks, all that the update reads and writes is seen in rows of a block: one kernel then makes
  // the update and finds what each block is scaled by.
  void shape_in_blocks() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const int64_t elements = gradients_[i].type().elements();
      const int64_t block = options_.storage.moments == "int8" ? moment_block(elements) : 0;
      if (block > 0) gradients_[i] = reshape(gradients_[i], {elements / block, block});
    }
  }

  // One of the three numbers that the bits of an element hold: its parameter's 24 bits, or the 20 of either moment. They
  // decide between neighbours that are up to 2^16 values of f32 apart.
  static Tensor uniform(Tensor bits, int number) {
    const double above = number == 0 ? 0 : number == 1 ? 24 : 44;
    const int digits = number == 0 ? 24 : 20;
    const Tensor whole =
        shift_right(above > 0 ? shift_left(bits, above) : bits, static_cast<double>(64 - digits));
    return cast(whole, DType::f32) * std::ldexp(1.0, -digits);
  }
  // 64 random bits for each element of a parameter.
  Tensor bits_of(size_t index) {
    const Tensor source[] = {count_state(trace_, "random.seed"), count_state(trace_, "step")};
    // The model counts its sites from the first.
    return draw_bits(source, kSites - 1 - static_cast<int64_t>(index), gradients_[index].shape());
  }

  void clip() {
    if (options_.clip_value > 0)
      for (Tensor& gradient : gradients_)
        gradient = clamp(gradient, -options_.clip_value, options_.clip_value);
    if (options_.clip_norm == 0) return;
    const Tensor norm = options_.clip_value > 0 ? global_norm(gradients_) : norm_;
    const Tensor factor = minimum(options_.clip_norm / (norm + 1e-6), 1.0);
    for (Tensor& gradient : gradients_) gradient = gradient * factor;
  }

  Tensor next_value(const UpdateContext& context, size_t index) {
    const Tensor whole = parameters_[index].tensor;
    const Tensor gradient = gradients_[index];
    ParameterUpdate parameter{parameters_[index].name, whole.shape(),
                              reshape(whole, gradient.shape()), gradient};
    const int rank = whole.rank();
    if (rank >= 2 || options_.decays_all) parameter.weight_decay = options_.weight_decay;
    bool matrix = options_.name == "muon" && rank == 2 && !is_table_[index];
    if (const int g = group_of_[index]; g >= 0) {
      const ParameterGroup& group = options_.groups[static_cast<size_t>(g)];
      parameter.weight_decay = group.weight_decay.value_or(parameter.weight_decay);
      parameter.learning_rate_multiplier = group.learning_rate_multiplier;
      if (!group.algorithm.empty()) matrix = group.algorithm == "muon" && rank == 2;
    }
    const bool narrow = !options_.storage.master_weights && rank >= 2;
    const bool draws =
        options_.storage.stochastic && (narrow || options_.storage.moments == "bf16");
    const Tensor bits = draws ? bits_of(index) : Tensor{};
    if (draws) parameter.draw = [bits](int moment) { return uniform(bits, moment); };
    const Tensor next = options_.name == "sgd"              ? sgd_update(context, parameter)
                        : options_.name == "lion"           ? lion_update(context, parameter)
                        : options_.name == "muon" && matrix ? muon_update(context, parameter)
                                                            : adamw_update(context, parameter);
    if (!narrow) return next;
    return draws ? round_stochastically_to_bf16(next, uniform(bits, 0))
                 : round_to_nearest_bf16(next);
  }

  void keep_ema(const Trace::Parameter& parameter, Tensor next, Tensor count) {
    const Tensor state = trace_.state(ema_name(parameter.name), Role::ema, parameter.tensor.type(),
                                      Initializer::zeros());
    const Tensor average = reshape(state, next.shape());
    const double limit = options_.ema_decay;
    if (!options_.ema_warms_up) {
      keep(state, average * limit + next * (1.0 - limit));
      return;
    }
    const Tensor decay = minimum(count / (count + 9.0), limit);
    keep(state, average * cast(decay, DType::f32) + next * cast(1.0 - decay, DType::f32));
  }

  void add_norms(OptimizerResult& result) const {
    if (options_.norms == "off") return;
    std::vector<std::pair<std::string, std::vector<size_t>>> sets;
    const auto add = [&](const std::string& key, size_t index) {
      for (auto& [known, members] : sets)
        if (known == key) return members.push_back(index);
      sets.push_back({key, {index}});
    };
    for (size_t i = 0; i < parameters_.size(); ++i)
      add(options_.norms == "parameters" ? parameters_[i].name
          : group_of_[i] < 0             ? "others"
                                         : options_.groups[static_cast<size_t>(group_of_[i])].match,
          i);
    for (const auto& [key, members] : sets) {
      std::vector<Tensor> gradients;
      std::vector<Tensor> values;
      for (const size_t index : members) {
        gradients.push_back(gradients_[index]);
        values.push_back(parameters_[index].tensor);
      }
      result.metrics.emplace_back("gradient_norm/" + key, global_norm(gradients));
      result.metrics.emplace_back("parameter_norm/" + key, global_norm(values));
    }
  }

  // The gradients of the parameters that match, and the number of their elements.
  std::pair<std::vector<Tensor>, int64_t> matching(const std::string& pattern) const {
    std::vector<Tensor> gradients;
    int64_t elements = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (pattern_distance(pattern, parameters_[i].name) > 0) continue;
      gradients.push_back(gradients_[i]);
      elements += gradients_[i].type().elements();
    }
    if (gradients.empty())
      throw UsageError(fmt::format("optimizer: no parameter matches '{}'", pattern));
    return {gradients, elements};
  }

  void add_ratios(OptimizerResult& result) const {
    constexpr double kNothing = 1e-10;
    for (const GradientRatio& ratio : options_.ratios) {
      const auto [above, elements_above] = matching(ratio.numerator);
      const auto [below, elements_below] = matching(ratio.denominator);
      const Tensor numerator = global_norm(above), denominator = global_norm(below);
      const Tensor by_nothing = select(
          less(numerator, kNothing), 1.0,
          full(numerator.builder(), numerator.type(), std::numeric_limits<double>::infinity()));
      const Tensor is_nothing = less(denominator, kNothing);
      const Tensor value =
          select(is_nothing, by_nothing, numerator / select(is_nothing, 1.0, denominator));
      result.metrics.emplace_back(ratio.name, value);
      result.metrics.emplace_back(ratio.name + "/per_parameter",
                                  value * std::sqrt(static_cast<double>(elements_below) /
                                                    static_cast<double>(elements_above)));
    }
  }

  Trace& trace_;
  const OptimizerOptions& options_;
  const std::vector<Trace::Parameter> parameters_;
  std::vector<int> group_of_;   ///< per parameter; -1: none
  std::vector<bool> is_table_;  ///< per parameter
  std::vector<Tensor> gradients_;
  Tensor loss_;
  Tensor norm_;
  Tensor finite_;
  Tensor scale_;  ///< invalid: losses are not scaled
};

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = {"adamw", "sgd", "lion", "muon"};
  return names;
}

std::string ema_name(const std::string& parameter) { return parameter + ".average"; }

OptimizerResult optimize(Trace& trace, Tensor loss, const OptimizerOptions& options) {
  const Scope scope(trace, "optimizer");
  Update update(trace, options);
  update.begin(loss, update.gradients_of(loss));
  return update.finish();
}

OptimizerResult optimize_gradients(
    Trace& trace, const std::function<ScaledGradients(Tensor scale)>& differentiate,
    const OptimizerOptions& options) {
  Update update(trace, options);
  const ScaledGradients found = differentiate(update.loss_scale());  // in the model's own scopes
  const Scope scope(trace, "optimizer");
  update.begin(found.loss, update.unscaled(found.gradients));
  return update.finish();
}

OptimizerResult optimize_halves(Trace& trace, Tensor first_loss, Tensor second_loss,
                                int64_t batch_size, const OptimizerOptions& options) {
  const Scope scope(trace, "optimizer");
  Update update(trace, options);
  const std::vector<Tensor> first = update.gradients_of(first_loss);
  const std::vector<Tensor> second = update.gradients_of(second_loss);
  std::vector<Tensor> whole;
  for (size_t i = 0; i < first.size(); ++i) whole.push_back((first[i] + second[i]) * 0.5);
  update.begin(first_loss + second_loss, whole);
  const Tensor noise_scale =
      gradient_noise_scale(trace, first, second, whole, batch_size,
                           [&](Tensor state, Tensor next) { update.keep(state, next); });
  OptimizerResult result = update.finish();
  result.metrics.emplace_back("gradient_noise_scale", noise_scale);
  return result;
}

}  // namespace fullbore
