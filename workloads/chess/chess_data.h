#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/train/config.h"
#include "workloads/chess/chess_tokens.h"

namespace fullbore::chess {

/// Records with their tokens.
struct ChessExamples {
  std::vector<ChessRecord> records;
  std::vector<RecordTokens> tokens;

  size_t size() const { return records.size(); }
};

/// What a model of chess learns from, and what is held out from it by its positions (is_held_out()).
struct ChessData {
  ChessTokens tokens;
  ChessExamples training;
  ChessExamples held_out;
  std::string identity;  ///< of the contents, not of the path
};

/// data.path, or records by chess.recipe, as data.tokenizer cuts them. Everything is a function of the configuration and the
/// file. DataError: a file that is not of records, an engine that is not there, a record that is not of the tokenizer, or
/// one that is longer than the batches are (data.buckets, model.context). UsageError: nothing would be left on one side.
std::shared_ptr<const ChessData> open_chess_data(const Config& config,
                                                 std::shared_ptr<const Tokenizer> tokenizer);

/// Lengths of batches, ascending: data.buckets, or model.context alone.
std::vector<int64_t> chess_lengths(const Config& config);
/// Where what engines said is kept for the next run, in data.cache_dir or the user's cache. DataError as data_cache_folder().
std::string analysis_cache_file(const Config& config);
/// For people: "50000 endgames (search to depth 2)", "records of FILE".
std::string about_chess_data(const Config& config);

}  // namespace fullbore::chess
