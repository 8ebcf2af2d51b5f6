#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/corpus_line.h"

namespace fullbore::chess {

/// A record as one line of JSON, without its end: {"task": "P", "prompt": ..., "completion": ..., "fen": ..., "top":
/// [["e2e4", 0.35], ...]}, or {"task": "A", ..., "move": "e2e4"}.
std::string record_line(const ChessRecord& record);
/// The opposite. Failure: "byte 17: ..." with the field, what it holds and what was expected.
Result<ChessRecord> parse_record_line(std::string_view line);

/// A record with what somebody answered to its prompt.
struct AnsweredRecord {
  ChessRecord record;
  std::string answer;
};
/// A record's line with one more field, "answer": a text. Failure: as parse_record_line().
Result<AnsweredRecord> parse_answered_line(std::string_view line);

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

}  // namespace fullbore::chess
