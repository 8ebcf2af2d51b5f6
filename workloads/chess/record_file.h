#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/chess_record.h"

namespace fullbore {

/// A record as one line of JSON, without its end: {"task": "P", "prompt": ..., "completion": ..., "fen": ..., "top":
/// [["e2e4", 0.35], ...]}, or {"task": "A", ..., "move": "e2e4"}.
std::string record_line(const ChessRecord& record);
/// The opposite. Failure: "byte 17: ..." with the field, what it holds and what was expected.
Result<ChessRecord> parse_record_line(std::string_view line);

/// What was done about lines of a published corpus.
struct CorpusCounts {
  int64_t records = 0;
  int64_t prefixed = 0;    ///< A records that lacked "A: "
  int64_t relabelled = 0;  ///< P records whose best move was not the first of the best evaluations
  int64_t ambiguous = 0;   ///< P records left out, for several moves share the best evaluation
  int64_t malformed = 0;   ///< lines left out: see CorpusOptions::skip_malformed
  std::string first_malformed;  ///< "file:line: ..."
  bool operator==(const CorpusCounts&) const = default;
};

struct CorpusOptions {
  /// Published P records have the worst of five moves as Black's best (section 1 of the specification). True: the best
  /// move is that of the best evaluation, and a record in which two moves share it is left out. False: the label is
  /// taken as it stands, for both colours.
  bool legacy_black_label = true;
  bool skip_malformed = false;  ///< false: the first malformed line is a Failure
};

/// One line of a published corpus, "P: ..." or "A: ..." or an A record without its letter. The record's prompt and
/// completion together are the line itself but for what `counts` tells. Nothing: the line is left out.
/// Failure: what is wrong with it, with its field.
Result<std::optional<ChessRecord>> parse_corpus_line(std::string_view line,
                                                     const CorpusOptions& options,
                                                     CorpusCounts& counts);

/// Hands over every record of a file: of JSON lines, or of lines of a published corpus, gzipped or not. Each line is told
/// by its first character, '{' or not; empty lines are passed over.
/// Failure: "file:line: ..."; or what `take` returns.
Result<CorpusCounts> read_records(const std::string& path, const CorpusOptions& options,
                                  const std::function<Status(ChessRecord&&)>& take);
/// The same of a text in memory; `name` stands in messages.
Result<CorpusCounts> parse_records(std::string_view text, const std::string& name,
                                   const CorpusOptions& options,
                                   const std::function<Status(ChessRecord&&)>& take);

/// All of them in memory. Failure also where there is none.
Result<std::vector<ChessRecord>> read_all_records(const std::string& path,
                                                  const CorpusOptions& options = {});

}  // namespace fullbore
