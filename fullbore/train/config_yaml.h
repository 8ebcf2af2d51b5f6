#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/train/config_schema.h"

namespace fullbore {

/// One `key: value` of a config file.
struct ConfigEntry {
  std::string section;
  std::string name;
  int line = 0;  ///< 1-based, of the key
  ConfigText value;
};

/// A section's name, wherever it stands.
struct ConfigSection {
  std::string name;
  int line = 0;
};

struct ConfigDocument {
  std::vector<ConfigSection> sections;
  std::vector<ConfigEntry> entries;
};

/// Reads YAML of exactly two levels, sections and keys, whose values are scalars or lists of
/// scalars, or, where the key allows it, of maps, each of which becomes a text "key=value ...". Throws UsageError with `source` and line for everything else.
ConfigDocument read_config_yaml(std::string_view yaml, const std::string& source);

}  // namespace fullbore
