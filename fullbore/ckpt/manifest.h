#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"

namespace fullbore {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestEntry {
  uint64_t bytes = 0;
  uint64_t hash = 0;  ///< xxHash64
  bool operator==(const ManifestEntry&) const = default;
};
/// The files of a checkpoint by name.
using Manifest = std::map<std::string, ManifestEntry>;

/// JSON: {"format": 1, "files": {"weights.safetensors": {"bytes": 3208, "xxhash64": "<16 digits>"}},
/// "xxhash64": "<16 digits>"}; the last is of this text itself, those digits taken as zeros.
std::string encode_manifest(const Manifest& manifest);

/// Failure says what is wrong; the caller adds the path. No altered byte goes unnoticed.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace fullbore
