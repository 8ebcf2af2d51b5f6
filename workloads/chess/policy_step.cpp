#include "workloads/chess/policy_step.h"

#include <algorithm>
#include <array>

#include "fullbore/app/job_options.h"
#include "fullbore/base/check.h"
#include "workloads/chess/chess_data.h"

namespace fullbore::chess {
namespace {

using Aggregation = PolicyLossOptions::Aggregation;
using Ratio = PolicyLossOptions::Ratio;

const std::string& resolved(const std::string& value, const std::string& otherwise) {
  return value == "auto" ? otherwise : value;
}

std::string own_aggregation(const std::string& algorithm) {
  if (algorithm == "dapo") return "tokens";
  return algorithm == "dr_grpo" ? "fixed" : "sequences";
}

std::string own_advantage(const std::string& algorithm) {
  if (algorithm == "dr_grpo") return "centred";
  return algorithm == "rloo" ? "leave_one" : "sample";
}

// By PolicyField.
constexpr std::array kFieldNames = {"tokens",  "before",    "targets",  "old",      "advantage",
                                    "penalty", "reference", "branches", "positions"};

// Lengths of rows with a whole group, of the longest that one may have: a step is compiled for each.
constexpr std::array<int64_t, 5> kLengthParts = {8, 10, 11, 12, 16};

// What the model says of the completions in fields of a batch.
template <class Field>
TokenScores scores_of(Trace& trace, const PolicyHidden& hidden, const Field& field,
                      int64_t classes) {
  const CompletionInputs inputs{.tokens = field(PolicyField::tokens),
                                .before = field(PolicyField::before),
                                .targets = field(PolicyField::targets)};
  const LanguageModelHead head =
      hidden.of_groups ? hidden.of_groups(trace, {.tokens = inputs.tokens,
                                                  .branches = field(PolicyField::branches),
                                                  .positions = field(PolicyField::positions)})
                       : hidden.of_texts(trace, inputs.tokens);
  return completion_scores(head, inputs, classes);
}

}  // namespace

int64_t completion_tokens(const Config& config) {
  const ChessKeys::Rollout& keys = chess_keys(config).rollout;
  const bool only_policy =
      chess_keys(config).chess.recipe == "endgames" && config.data.path.empty();
  return only_policy ? keys.policy_tokens : std::max(keys.policy_tokens, keys.arbiter_tokens);
}

PolicyOptions policy_options(const Config& config) {
  const ChessKeys::Grpo& keys = chess_keys(config).grpo;
  PolicyOptions options;
  const std::string aggregation = resolved(keys.aggregation, own_aggregation(keys.algorithm));
  options.loss.aggregation = aggregation == "tokens"  ? Aggregation::tokens
                             : aggregation == "fixed" ? Aggregation::fixed
                                                      : Aggregation::sequences;
  const std::string ratio = resolved(keys.ratio, keys.algorithm == "gspo" ? "sequence" : "token");
  options.loss.ratio = ratio == "sequence" ? Ratio::sequence : Ratio::token;
  options.loss.clip_low = keys.clip_low;
  options.loss.clip_high = keys.clip_high > 0         ? keys.clip_high
                           : keys.algorithm == "dapo" ? 0.28
                                                      : keys.clip_low;
  options.loss.longest = completion_tokens(config);
  options.loss.entropy = keys.entropy;
  options.advantage = *parse_advantage(resolved(keys.advantage, own_advantage(keys.algorithm)));
  options.penalty = {.control = *parse_penalty_control(keys.kl_controller),
                     .initial = keys.kl,
                     .target = keys.kl_target,
                     .warmup = keys.kl_warmup};
  options.has_reference = keys.kl > 0;
  const std::string dapo = keys.algorithm == "dapo" ? "resample" : "keep";
  options.resamples = resolved(keys.groups, dapo) == "resample";
  options.masks_overlong =
      resolved(keys.overlong, keys.algorithm == "dapo" ? "mask" : "keep") == "mask";
  return options;
}

RewardOptions reward_options(const Config& config) {
  const ChessKeys::Reward& keys = chess_keys(config).reward;
  return {.scheme = *parse_reward_scheme(keys.scheme),
          .fen_scaling = *parse_score_scaling(keys.fen_scaling),
          .eval_scaling = *parse_score_scaling(keys.eval_scaling),
          .malformed = keys.malformed,
          .illegal_reward = keys.illegal_reward};
}

PolicyLayout policy_layout(const Config& config) {
  const ChessKeys::Rollout& keys = chess_keys(config).rollout;
  const std::vector<int64_t> lengths = chess_lengths(config);
  PolicyLayout layout{.rows = keys.prompts * keys.samples,
                      .longest = completion_tokens(config),
                      .lengths = lengths};
  const bool shares =
      chess_keys(config).grpo.share_prompts && policy_hidden(config, 1).of_groups != nullptr;
  if (!shares) return layout;
  layout.rows = keys.prompts;
  layout.completions = keys.samples;
  // Each prompt with one of its completions has room in the longest of those lengths, and each of the others comes with
  // its own tokens but the last, which is a target alone.
  const int64_t most = lengths.back() + (keys.samples - 1) * (layout.longest - 1);
  layout.lengths.clear();
  for (const int64_t parts : kLengthParts) {
    const int64_t length = (most * parts + kLengthParts.back() - 1) / kLengthParts.back();
    if (layout.lengths.empty() || length > layout.lengths.back()) layout.lengths.push_back(length);
  }
  return layout;
}

PolicyHidden policy_hidden(const Config& config, int64_t tokens) {
  const TextModel& model = text_model(config);
  PolicyHidden hidden;
  if (chess_keys(config).grpo.share_prompts && model.branched_hidden)
    hidden.of_groups = model.branched_hidden(config, tokens);
  if (!hidden.of_groups) hidden.of_texts = model.hidden(config, tokens);
  return hidden;
}

std::vector<std::vector<BatchField>> policy_shapes(const Config& config) {
  const PolicyLayout layout = policy_layout(config);
  const Shape completions = {layout.rows, layout.completions, layout.longest};
  std::vector<std::vector<BatchField>> shapes;
  for (const int64_t length : layout.lengths) {
    const auto add = [&, fields = &shapes.emplace_back()](PolicyField field, TensorType type) {
      fields->push_back({kFieldNames[static_cast<size_t>(field)], type});
    };
    const TensorType tokens{DType::i32, {layout.rows, length}};
    add(PolicyField::tokens, tokens);
    add(PolicyField::before, {DType::i32, completions});
    add(PolicyField::targets, {DType::i32, completions});
    add(PolicyField::old, {DType::f32, completions});
    add(PolicyField::advantage, {DType::f32, {layout.rows, layout.completions}});
    add(PolicyField::penalty, {DType::f32, {}});
    if (policy_options(config).has_reference)
      add(PolicyField::reference, {DType::f32, completions});
    if (!layout.shares_prompts()) continue;
    add(PolicyField::branches, tokens);
    add(PolicyField::positions, tokens);
  }
  return shapes;
}

int policy_field(const std::vector<BatchField>& fields, PolicyField field) {
  const auto found =
      std::ranges::find(fields, kFieldNames[static_cast<size_t>(field)], &BatchField::name);
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

RolloutSizes policy_rollout_sizes(const Config& config, int64_t vocabulary) {
  const ChessKeys::Rollout& keys = chess_keys(config).rollout;
  const int64_t rows = keys.prompts * keys.samples;
  return {.slots = keys.slots > 0 ? std::min(keys.slots, rows) : rows,
          .context = chess_lengths(config).back(),
          .vocabulary = vocabulary,
          .tokens_per_launch = keys.tokens_per_launch,
          .pool_dtype = pool_dtype(compile_options(config))};
}

Graph policy_scoring(const PolicyHidden& hidden, const std::vector<BatchField>& fields,
                     int64_t classes, bool reference) {
  Trace trace(reference ? "reference" : "score", false);
  std::array<Tensor, kFieldNames.size()> inputs;
  for (const PolicyField name : {PolicyField::tokens, PolicyField::before, PolicyField::targets,
                                 PolicyField::branches, PolicyField::positions})
    if (const int at = policy_field(fields, name); at >= 0) {
      const BatchField& field = fields[static_cast<size_t>(at)];
      inputs[static_cast<size_t>(name)] = trace.batch(field.name, field.type);
    }
  const auto scores = [&] {
    const auto input = [&](PolicyField name) { return inputs[static_cast<size_t>(name)]; };
    return scores_of(trace, hidden, input, classes).log_probability;
  };
  if (reference) {
    const Scope scope(trace, kReferenceScope);
    const FrozenScope frozen(trace);
    trace.result("log_probability", scores());
  } else {
    trace.result("log_probability", scores());
  }
  return trace.finish();
}

LossFunction policy_step_loss(const Config& config, const PolicyHidden& hidden, int64_t classes) {
  return [hidden, classes, options = policy_options(config), fields = policy_shapes(config).back()](
             Trace& trace, std::span<const Tensor> batch) {
    const auto field = [&](PolicyField name) {
      return batch[static_cast<size_t>(policy_field(fields, name))];
    };
    const Tensor targets = field(PolicyField::targets);
    const int64_t completions = targets.dim(0) * targets.dim(1);
    const auto by_completion = [&](Tensor x) { return reshape(x, {completions, targets.dim(2)}); };
    const TokenScores scores = scores_of(trace, hidden, field, classes);
    PolicyTokens tokens{.log_probability = scores.log_probability,
                        .entropy = scores.entropy,
                        .counted = greater_equal(by_completion(targets), 0.0),
                        .old = by_completion(field(PolicyField::old)),
                        .reference = {},
                        .advantage = reshape(field(PolicyField::advantage), {completions}),
                        .penalty = field(PolicyField::penalty)};
    if (options.has_reference) tokens.reference = by_completion(field(PolicyField::reference));
    return policy_loss(tokens, options.loss);
  };
}

}  // namespace fullbore::chess
