#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore {

/// The records of a JSON-lines file of objects. Failure names path and line; a torn last line, which
/// a crash may leave, is left out.
Result<std::vector<nlohmann::ordered_json>> read_json_lines(const std::string& path);

/// A table of flat objects as CSV (RFC 4180, lines end with LF): a header with every key, in the
/// order in which they first occur, then one line per record. What a record lacks, and null, is
/// empty.
std::string to_csv(std::span<const nlohmann::ordered_json> records);

}  // namespace fullbore
