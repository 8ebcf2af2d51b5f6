#include "workloads/chess/chess_model.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/base/error.h"
#include "fullbore/text/text_keys.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_move_text.h"
#include "workloads/chess/policy_reward.h"
#include "workloads/chess/record_recipes.h"

namespace fullbore::chess {
namespace {

/// Which tokens leave the moves of answers legal. Prompts must outlive it.
class LegalMoveTokens {
 public:
  LegalMoveTokens(const ChessTokens& tokens, std::span<const ChessRecord> prompts, size_t samples)
      : end_(tokens.end()), prompts_(prompts), samples_(samples), rows_(prompts.size() * samples) {
    for (int32_t token = 0; token < tokens.vocabulary(); ++token)
      texts_.push_back(tokens.text({&token, 1}));
  }

  void allow(const RolloutRow& row, std::vector<bool>& allowed) {
    const ChessRecord& prompt = prompts_[row.prompt];
    Position position;
    if (prompt.task != ChessTask::policy || parse_fen(prompt.fen, position) != FenError::kNone)
      return;
    Row& known = rows_[row.prompt * samples_ + row.sample];
    if (!known.text) known.text.emplace(position, prompt.prompt.ends_with("M:"));
    for (; known.tokens < row.tokens.size(); ++known.tokens)
      known.text->take(texts_[static_cast<size_t>(row.tokens[known.tokens])]);
    for (size_t token = 0; token < texts_.size(); ++token)
      allowed[token] = static_cast<int32_t>(token) == end_
                           ? known.text->may_end()
                           : LegalMoveText(*known.text).take(texts_[token]);
  }

 private:
  struct Row {
    std::optional<LegalMoveText> text;
    size_t tokens = 0;  ///< taken
  };
  int32_t end_;
  std::span<const ChessRecord> prompts_;
  size_t samples_;
  std::vector<std::string> texts_;  ///< by token
  std::vector<Row> rows_;
};

}  // namespace

ChessModel::ChessModel(const std::string& run, int64_t rows)
    : rows_(rows),
      model_(load_model(run, {.samples = rows, .decodes = true, .is_paged = true})),
      tokens_(model_.tokenizer) {
  const int64_t known = model_.tokenizer->vocabulary_size();
  RolloutSizes sizes = rollout_sizes(model_.config, known, rows);
  sizes.vocabulary = tokens_.vocabulary();
  rollout_.emplace(model_paged_decode(model_.config, known), sizes, model_.state,
                   trained_options(model_.config));
}

RecordFormat ChessModel::format(const std::string& name) const {
  std::string known = name;
  if (known.empty())
    known = text_keys(model_.config).data.tokenizer == "byte"
                ? chess_keys(model_.config).chess.recipe
                : "published";
  if (known == "published") return published_format();
  return recipe_format(*parse_record_recipe(known));
}

std::vector<ModelAnswer> ChessModel::answer(std::span<const ChessRecord> prompts,
                                            const CompletionOptions& options) {
  const ChessKeys::Rollout& keys = chess_keys(model_.config).rollout;
  const int64_t context = text_keys(model_.config).model.context;
  std::vector<RolloutPrompt> asked;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int32_t> ids = tokens_.prompt(prompts[i]).take_or_throw();
    if (std::ssize(ids) > context)
      throw DataError(fmt::format("a prompt has {} tokens, the model's context {}: \"{}\"",
                                  ids.size(), context, prompts[i].prompt));
    const bool policy = prompts[i].task == ChessTask::policy;
    asked.push_back({.tokens = std::move(ids),
                     .samples = options.samples,
                     .max_new_tokens = policy ? keys.policy_tokens : keys.arbiter_tokens,
                     .index = static_cast<uint32_t>(i)});
  }
  const auto samples = static_cast<size_t>(options.samples);
  std::vector<ModelAnswer> answers(prompts.size() * samples);
  RolloutOptions draws{.sampling = {.temperature = options.temperature,
                                    .top_k = options.top_k,
                                    .top_p = options.top_p},
                       .stop_tokens = {tokens_.end()},
                       .key = options.seed,
                       .step = options.round};
  std::optional<LegalMoveTokens> legal;
  if (options.legal_moves) {
    legal.emplace(tokens_, prompts, samples);
    draws.allow = [&](const RolloutRow& row, std::vector<bool>& allowed) {
      legal->allow(row, allowed);
    };
  }
  rollout_->run(asked, draws, [&](RolloutRow&& row) {
    answers[row.prompt * samples + row.sample] = {row.prompt, row.sample, tokens_.text(row.tokens),
                                                  row.reason == FinishReason::stopped};
  });
  return answers;
}

std::vector<std::string> ChessModel::best_moves(std::span<const Position> positions,
                                                const RecordFormat& format,
                                                const CompletionOptions& options) {
  std::vector<ChessRecord> prompts;
  for (const Position& position : positions)
    prompts.push_back(policy_prompt(fen_text(position), format));
  std::vector<std::string> moves(positions.size());
  for (const ModelAnswer& answer : this->answer(prompts, options)) {
    const PolicyScore score =
        score_policy(prompts[answer.prompt].prompt, answer.text, PolicyTruth());
    if (score.best_move) moves[answer.prompt] = uci_text(*score.best_move);
  }
  return moves;
}

}  // namespace fullbore::chess
