#pragma once
#include <string_view>

#include "fullbore/train/config_schema.h"

namespace fullbore {

/// The value of `key=value` on a command line, as the field's type wants it read. Lists are [a, b]; an item may
/// be in quotes, and where the field takes maps {key: value, key: value}, which becomes "key=value key=value" as in
/// a file. Unlike in YAML a pattern needs no quotes: {match: *.bias}. UsageError without the key's name: what is
/// unfinished or is no key: value.
ConfigText read_override(const ConfigField& field, std::string_view text);

}  // namespace fullbore
