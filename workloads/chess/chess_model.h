#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/text/trained_text_model.h"
#include "workloads/chess/chess_data.h"
#include "workloads/chess/chess_record.h"
#include "workloads/chess/position.h"

namespace fullbore::chess {

struct CompletionOptions {
  double temperature = 0;  ///< 0: the likeliest token each time
  int64_t top_k = 0;
  double top_p = 1;
  int64_t samples = 1;  ///< of each prompt
  uint64_t seed = 1;
  uint32_t round = 0;  ///< draws differ from round to round
  /// Of P answers, tokens that would make a move illegal are not drawn (LegalMoveText): legality says nothing of the model.
  bool legal_moves = false;
};

/// One answer to a prompt.
struct ModelAnswer {
  size_t prompt = 0;
  uint32_t sample = 0;
  std::string text;  ///< without the end token; any bytes
  bool ended = false;
};

/// A trained model of records, which answers prompts many at a time.
class ChessModel {
 public:
  /// A run, a checkpoint, or a folder of weights that `generate` takes. UsageError, DataError as load_model(); UsageError for a
  /// model without a paged cache.
  explicit ChessModel(const std::string& run, int64_t rows = 64);

  const Config& config() const { return model_.config; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return model_.tokenizer; }
  const std::string& path() const { return model_.path; }
  /// How the records that it was trained on are written: "endgames", "games" or "published"; by `name` instead, if given.
  RecordFormat format(const std::string& name = "") const;

  /// Answers, prompt after prompt, sample after sample. DataError: a prompt that the tokenizer or the context has no room for.
  std::vector<ModelAnswer> answer(std::span<const ChessRecord> prompts,
                                  const CompletionOptions& options);
  /// What it answers to the P prompts of positions as its best move: UCI text, or "" where the format is not kept.
  std::vector<std::string> best_moves(std::span<const Position> positions,
                                      const RecordFormat& format, const CompletionOptions& options);

 private:
  int64_t rows_;
  TrainedModel model_;
  ChessTokens tokens_;
  std::optional<Rollout> rollout_;
};

}  // namespace fullbore::chess
