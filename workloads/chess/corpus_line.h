#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "workloads/chess/chess_record.h"

namespace fullbore::chess {

/// What was done about lines of a published corpus.
struct CorpusCounts {
  int64_t records = 0;
  int64_t prefixed = 0;    ///< A records that lacked "A: "
  int64_t relabelled = 0;  ///< P records whose best move is not that of the best evaluation
  int64_t ambiguous = 0;   ///< P records left out: several moves share the best evaluation
  int64_t malformed = 0;   ///< lines left out, with CorpusOptions::skip_malformed
  std::string first_malformed = {};  ///< "file:line: ..."
  bool operator==(const CorpusCounts&) const = default;
};

struct CorpusOptions {
  /// Published P records have the worst of five moves as Black's best (section 1 of the specification). True: the best
  /// move is that of the best evaluation, and a record in which two moves share it is left out. False: the label is
  /// taken as it stands, for both colours.
  bool legacy_black_label = true;
  bool skip_malformed = false;  ///< false: the first malformed line is a Failure
};

/// One line of a published corpus: "P: ...", "A: ...", or an A record without its letter; boards expanded or not. Prompt and
/// completion together are the line, but for what `counts` tells. Nothing: the line is left out.
/// Failure: the field, what it holds and what was expected.
Result<std::optional<ChessRecord>> parse_corpus_line(std::string_view line,
                                                     const CorpusOptions& options,
                                                     CorpusCounts& counts);

/// [a-h][1-8][a-h][1-8][qrbn]? and nothing else.
bool is_move_text(std::string_view text);
/// What the prompt of a record begins with, `fen` being that of the record, expanded or not: "P: " or "A: " and the FEN, of
/// A "+" and the move.
std::string beginning_of_prompt(const ChessRecord& record, std::string_view fen);

}  // namespace fullbore::chess
