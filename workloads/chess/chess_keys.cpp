#include "workloads/chess/chess_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/chess_task.h"
#include "workloads/chess/policy_step.h"

namespace fullbore::chess {
namespace {

constexpr ConfigRange kShare{.low = 0, .high = 1};
constexpr ConfigRange kNotNegative{.low = 0, .high = 1e6};
constexpr ConfigRange kCount{.low = 1, .high = 65536};
constexpr ConfigRange kCountOrNone{.low = 0, .high = 65536};

#define FB_KEY(section, member) \
#section "." #member,         \
      [](Config & config) -> ConfigPlace { return &chess_keys(config).section.member; }

std::vector<ConfigField> record_fields() {
  return {
      {FB_KEY(chess, recipe),
       {},
       {"endgames", "games"},
       "without data.path: positions of 3 to 5 pieces, boards expanded; or of random games"},
      {FB_KEY(chess, records), {1, 1e9}, {}, "of the recipe, those held out included"},
      {FB_KEY(chess, truth),
       {},
       {},
       "of the recipe's moves: search[:DEPTH] of our own, or stockfish[:DEPTH]"},
      {FB_KEY(chess, engine), {}, {}, "the program of stockfish; \"\": where Debian puts it"},
      {FB_KEY(chess, engine_seconds),
       {.low = 0, .high = 86400, .low_open = true},
       {},
       "that it has for a position, before another process is asked"},
      {FB_KEY(chess, arbiter_share), kShare, {}, "of the records of games that are of A"},
      {FB_KEY(chess, prompt_loss),
       {},
       {},
       "of data.batching=chess: prompts are learned too, not completions alone"},
  };
}

std::vector<ConfigField> rollout_fields() {
  return {
      {FB_KEY(rollout, prompts), kCount, {}, "of a step"},
      {FB_KEY(rollout, samples), kCount, {}, "completions of each prompt: its group"},
      {FB_KEY(rollout, temperature), {0, 1000}, {}, "divides the logits; 0: the likeliest token"},
      {FB_KEY(rollout, top_k), {0, 1e9}, {}, "only the k likeliest tokens; 0: all"},
      {FB_KEY(rollout, top_p),
       {.low = 0, .high = 1, .low_open = true},
       {},
       "only the fewest tokens whose probabilities sum to p"},
      {FB_KEY(rollout, policy_tokens), kCount, {}, "of a P completion with its end, at most"},
      {FB_KEY(rollout, arbiter_tokens), kCount, {}, "of an A completion with its end, at most"},
      {FB_KEY(rollout, slots), kCountOrNone, {}, "completions side by side; 0: all of a step"},
      {FB_KEY(rollout, tokens_per_launch), kCount, {}, "of each row, in one compiled loop"},
  };
}

std::vector<ConfigField> reward_fields() {
  return {
      {FB_KEY(reward, scheme),
       {},
       {"weighted", "graduated", "additive", "rank_decay", "cliff"},
       "weighted fields; W in five steps; a sum; by rank with penalties; A by exact position"},
      {FB_KEY(reward, fen_scaling),
       {},
       {"linear", "exponential", "sigmoid", "quadratic"},
       "of an A answer's similarity"},
      {FB_KEY(reward, eval_scaling),
       {},
       {"linear", "exponential", "sigmoid", "quadratic"},
       "of a P answer's evaluations"},
      {FB_KEY(reward, malformed), {-1, 0}, {}, "of an answer without the format"},
      {FB_KEY(reward, illegal_reward), {-1, 1}, {}, "that A answers for an illegal move"},
      {FB_KEY(reward, truth),
       {},
       {},
       "of P: record (its moves), rules (legality alone), search[:DEPTH] or stockfish[:DEPTH]"},
      {FB_KEY(reward, control),
       {},
       {"none", "shuffled", "length"},
       "rewards dealt out anew within each group, or the completion's length in their place"},
  };
}

std::vector<ConfigField> grpo_fields() {
  return {
      {FB_KEY(grpo, algorithm),
       {},
       {"grpo", "gspo", "dapo", "dr_grpo", "rloo"},
       "what `auto` stands for below"},
      {FB_KEY(grpo, advantage),
       {},
       {"auto", "centred", "sample", "population", "batch", "leave_one"},
       "r - mean; over the group's deviation by n - 1, n; over the batch's; or r - the others'"},
      {FB_KEY(grpo, aggregation),
       {},
       {"auto", "sequences", "tokens", "fixed"},
       "mean of completions' means; over all tokens; or over the most tokens there can be"},
      {FB_KEY(grpo, ratio), {}, {"auto", "token", "sequence"}, "what is clipped"},
      {FB_KEY(grpo, groups),
       {},
       {"auto", "keep", "resample"},
       "groups of equal rewards: as they are, or other prompts in their place, up to 4 times"},
      {FB_KEY(grpo, overlong),
       {},
       {"auto", "keep", "mask"},
       "completions without an end: as they are, or left out of the loss"},
      {FB_KEY(grpo, clip_low), kShare, {}, "ratios below 1 - it are clipped"},
      {FB_KEY(grpo, clip_high), kNotNegative, {}, "and above 1 + it; 0: clip_low, of dapo 0.28"},
      {FB_KEY(grpo, entropy), {0, 1}, {}, "coefficient of the entropy, which is to stay high"},
      {FB_KEY(grpo, kl), {0, 1}, {}, "coefficient of the way from the reference; 0: no reference"},
      {FB_KEY(grpo, kl_target),
       {.low = 0, .high = 1000, .low_open = true},
       {},
       "of kl_controller, in nats a token"},
      {FB_KEY(grpo, kl_controller),
       {},
       {"none", "step", "window", "proportional", "exponential"},
       "how grpo.kl follows it, within 0.001 and 1"},
      {FB_KEY(grpo, kl_warmup), kCountOrNone, {}, "steps with a coefficient of 0"},
      {FB_KEY(grpo, inner_epochs), {1, 64}, {}, "steps on each batch of completions"},
      {FB_KEY(grpo, recompute_old),
       {},
       {},
       "old log-probabilities by a pass of their own, not those of sampling"},
      {FB_KEY(grpo, share_prompts),
       {},
       {},
       "a prompt is computed once for all of its completions, where the model reads such rows"},
  };
}

#undef FB_KEY

std::vector<ConfigField> fields() {
  std::vector<ConfigField> all;
  for (const auto& part : {record_fields, rollout_fields, reward_fields, grpo_fields})
    for (ConfigField& field : part()) all.push_back(std::move(field));
  for (ConfigField& field : all) field.models = text_model_names();
  // Not the engine: a run folder that a stranger made never says which program is started.
  mark(all, &ConfigField::is_taken, {"chess.truth", "reward.truth"});
  return all;
}

/// "search", "search:3": one of the names, and a depth behind it.
bool is_truth(const std::string& truth, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    if (truth == name) return true;
    if (!truth.starts_with(name + ":")) return false;
    const std::string depth = truth.substr(name.size() + 1);
    return !depth.empty() && depth.size() <= 2 &&
           depth.find_first_not_of("0123456789") == std::string::npos && std::stoi(depth) > 0;
  });
}

void check_truth(const ConfigCheck& check, const std::string& key, const std::string& truth,
                 const std::vector<std::string>& plain) {
  if (is_truth(truth, {"search", "stockfish"}) || std::ranges::find(plain, truth) != plain.end())
    return;
  throw UsageError(
      fmt::format("config: {} is no truth; {}search, stockfish, or these with a depth, "
                  "such as search:2, were expected",
                  check.with_origin(key), plain.empty() ? "" : "record, rules, "));
}

void check(const ConfigCheck& check) {
  const Config& config = check.config();
  if (!is_text_model(config)) return;
  check_truth(check, "chess.truth", chess_keys(config).chess.truth, {});
  check_truth(check, "reward.truth", chess_keys(config).reward.truth, {"record", "rules"});
  const ChessKeys& keys = chess_keys(config);
  if (text_keys(config).data.batching != kGrpoBatching) return;
  check.together(keys.rollout.temperature > 0, "rollout.temperature",
                 "draws equal completions, of which nothing is learned with", "data.batching");
  check.together(keys.rollout.samples > 1, "rollout.samples",
                 "is no group, of which nothing is learned with", "data.batching");
  const int64_t inner = keys.grpo.inner_epochs;
  check.together(config.train.checkpoint_interval % inner == 0, "train.checkpoint_interval",
                 "is not a multiple of", "grpo.inner_epochs");
  check.together(config.train.steps % inner == 0, "train.steps", "is not a multiple of",
                 "grpo.inner_epochs");
  check.together(keys.grpo.kl > 0 || keys.grpo.kl_controller == "none", "grpo.kl",
                 "is no coefficient to be followed by", "grpo.kl_controller");
  check.together(config.model.dropout == 0, "model.dropout", "makes ratios noise with",
                 "data.batching");
}

bool makes_completions(const Config& config) {
  return is_text_model(config) && text_keys(config).data.batching == kGrpoBatching;
}

/// A batch has the completions of a step.
void settle(Config& config) {
  if (makes_completions(config)) config.train.batch_size = policy_layout(config).rows;
}

const WorkloadRegistrar kChess{
    {.name = "chess",
     .keys = {.fields = fields,
              .choices = {{"data.batching", {kChessBatching, kGrpoBatching}}},
              .settle = settle,
              .check = check,
              .settles_rows = makes_completions},
     .add_commands = add_chess_command,
     .registers = [] {
       register_text_task(chess_task());
       register_text_task(grpo_task());
     }}};

}  // namespace
}  // namespace fullbore::chess
