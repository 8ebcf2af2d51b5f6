#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "fullbore/base/result.h"

namespace fullbore {

/// What an experiment keeps of itself: JSON with a checksum of its own, written at once or not at all. Failure: the disk is
/// full, say; what was there before stays.
Status write_kept_json(const std::string& path, const nlohmann::ordered_json& json);
/// Text of such a file. Failure names the file: its checksum is missing or another, or it is no JSON.
Result<nlohmann::json> parse_kept_json(const std::string& text, const std::string& path);

}  // namespace fullbore
