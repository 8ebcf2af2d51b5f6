#include "workloads/chess/policy_step.h"

#include <algorithm>

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

std::vector<std::vector<BatchField>> policy_shapes(const Config& config) {
  const ChessKeys::Rollout& keys = chess_keys(config).rollout;
  const int64_t rows = keys.prompts * keys.samples;
  const int64_t completion = completion_tokens(config);
  std::vector<std::vector<BatchField>> shapes;
  for (const int64_t length : chess_lengths(config)) {
    const TensorType values{DType::f32, {rows, completion}};
    shapes.push_back({{"tokens", {DType::i32, {rows, length}}},
                      {"first", {DType::i32, {rows}}},
                      {"targets", {DType::i32, {rows, completion}}},
                      {"old", values},
                      {"advantage", {DType::f32, {rows}}},
                      {"penalty", {DType::f32, {}}}});
    if (policy_options(config).has_reference) shapes.back().push_back({"reference", values});
  }
  return shapes;
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

Graph policy_scoring(const HiddenFunction& hidden, const std::vector<BatchField>& fields,
                     int64_t classes, bool reference) {
  Trace trace(reference ? "reference" : "score", false);
  const auto input = [&](PolicyField name) {
    const BatchField& field = fields[static_cast<size_t>(name)];
    return trace.batch(field.name, field.type);
  };
  const CompletionInputs inputs{.tokens = input(PolicyField::tokens),
                                .first = input(PolicyField::first),
                                .targets = input(PolicyField::targets)};
  const auto scores = [&] {
    return completion_scores(trace, hidden, inputs, classes).log_probability;
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

LossFunction policy_step_loss(const Config& config, const HiddenFunction& hidden, int64_t classes) {
  return [hidden, classes, options = policy_options(config)](Trace& trace,
                                                             std::span<const Tensor> batch) {
    const auto field = [&](PolicyField name) { return batch[static_cast<size_t>(name)]; };
    const Tensor targets = field(PolicyField::targets);
    const TokenScores scores = completion_scores(
        trace, hidden, {field(PolicyField::tokens), field(PolicyField::first), targets}, classes);
    PolicyTokens tokens{.log_probability = scores.log_probability,
                        .entropy = scores.entropy,
                        .counted = greater_equal(targets, 0.0),
                        .old = field(PolicyField::old),
                        .reference = {},
                        .advantage = field(PolicyField::advantage),
                        .penalty = field(PolicyField::penalty)};
    if (options.has_reference) tokens.reference = field(PolicyField::reference);
    return policy_loss(tokens, options.loss);
  };
}

}  // namespace fullbore::chess
