#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// What a file of metrics holds.
struct JsonLinesFile {
  std::vector<nlohmann::ordered_json> records;  ///< of the sound lines
  std::vector<std::string> problems;            ///< "path:3: ..." of the others, the first of many
  int64_t problem_count = 0;
  int64_t unchecked = 0;  ///< sound lines without a checksum, of an older version
  int64_t lines = 0;      ///< written in all, as far as the last sound one tells
  bool is_torn = false;   ///< the last line has no end: it is being written, or a crash cut it off
};

/// Reads a JSON-lines file of objects, that JsonLines has written or another. Failure: it cannot be read.
Result<JsonLinesFile> read_json_lines(const std::string& path);

/// A table of flat objects as CSV (RFC 4180, lines end with LF): a header with every key, in the
/// order in which they first occur, then one line per record. What a record lacks, and null, is
/// empty.
std::string to_csv(std::span<const nlohmann::ordered_json> records);

}  // namespace fullbore
