#include "workloads/chess/chess_data.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/app/output.h"
#include "fullbore/base/hash.h"
#include "fullbore/text/text_keys.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/record_recipes.h"

namespace fullbore::chess {
namespace {

RecipeOptions recipe_options(const Config& config) {
  const ChessKeys::Chess& keys = chess_keys(config).chess;
  return {.recipe = *parse_record_recipe(keys.recipe),
          .records = keys.records,
          .seed = static_cast<uint64_t>(config.run.seed),
          .arbiter_share = keys.arbiter_share};
}

std::vector<ChessRecord> made_records(const Config& config) {
  EngineOptions engine;
  engine.path = chess_keys(config).chess.engine;
  engine.answer_seconds = chess_keys(config).chess.engine_seconds;
  if (chess_keys(config).chess.truth.starts_with("stockfish"))
    engine.cache_path = analysis_cache_file(config);
  const std::unique_ptr<MoveRanker> ranker =
      open_ranker(chess_keys(config).chess.truth, engine, worker_count(config));
  std::vector<ChessRecord> records;
  make_records(recipe_options(config), *ranker, [&](ChessRecord&& record) {
    records.push_back(std::move(record));
    return success();
  }).take_or_throw();
  for (const std::string& notice : ranker->take_notices()) print_message("chess: {}\n", notice);
  return records;
}

std::vector<ChessRecord> all_records(const Config& config) {
  if (config.data.path.empty()) return made_records(config);
  return read_all_records(config.data.path).take_or_throw();
}

void add(ChessExamples& examples, ChessRecord record, const ChessTokens& tokens, int64_t longest) {
  RecordTokens cut = tokens.tokens(record).take_or_throw();
  const auto length = static_cast<int64_t>(cut.prompt.size() + cut.completion.size());
  if (length > longest)
    throw DataError(fmt::format(
        "a record takes {} tokens and batches have {} (data.buckets, model.context): \"{}\"",
        length, longest, record.text()));
  examples.records.push_back(std::move(record));
  examples.tokens.push_back(std::move(cut));
}

}  // namespace

std::string analysis_cache_file(const Config& config) {
  return data_cache_folder(config, "chess") + "/analyses.tsv";
}

std::vector<int64_t> chess_lengths(const Config& config) {
  const TextKeys& keys = text_keys(config);
  return keys.data.buckets.empty() ? std::vector<int64_t>{keys.model.context} : keys.data.buckets;
}

std::string about_chess_data(const Config& config) {
  if (!config.data.path.empty()) return "records of " + config.data.path;
  const ChessKeys::Chess& keys = chess_keys(config).chess;
  return fmt::format("{} records of {} (moves by {})", keys.records, keys.recipe, keys.truth);
}

std::shared_ptr<const ChessData> open_chess_data(const Config& config,
                                                 std::shared_ptr<const Tokenizer> tokenizer) {
  auto data = std::make_shared<ChessData>(ChessData{ChessTokens(std::move(tokenizer)), {}, {}, ""});
  const int64_t longest = chess_lengths(config).back();
  const double share = config.data.validation_fraction;
  std::string texts;
  for (ChessRecord& record : all_records(config)) {
    texts += record.text();
    texts += '\n';
    ChessExamples& side =
        share > 0 && is_held_out(record.fen, share) ? data->held_out : data->training;
    add(side, std::move(record), data->tokens, longest);
  }
  if (data->training.size() == 0 || (share > 0 && data->held_out.size() == 0))
    throw UsageError(fmt::format(
        "of {} records data.validation_fraction={} leaves {} to learn from and {} held out",
        data->training.size() + data->held_out.size(), share, data->training.size(),
        data->held_out.size()));
  data->identity = fmt::format("chess {}", hash_hex(hash_text(texts)));
  return data;
}

}  // namespace fullbore::chess
