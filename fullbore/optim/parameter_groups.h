#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// Parameters that are updated otherwise than the rest, chosen by name.
struct ParameterGroup {
  std::string match;  ///< of the whole name: `*` stands for any characters, `?` for one
  std::optional<double> weight_decay = {};  ///< in place of the optimiser's, whatever the rank
  double learning_rate_multiplier = 1;
  std::string algorithm = {};  ///< "adamw": not by muon; "muon": by muon though it is a table
};

/// A group out of "match=*.bias weight_decay=0 learning_rate_multiplier=1 algorithm=adamw": `match`
/// and any of the others, in any order, separated by blanks. UsageError names the nearest key, or
/// the value and what was expected.
ParameterGroup parse_parameter_group(std::string_view text);

/// For each name the index of the first group that matches it, or -1. UsageError when a group
/// matches no name, naming the nearest one, or when earlier groups take all that it matches.
std::vector<int> assign_groups(std::span<const std::string> names,
                               std::span<const ParameterGroup> groups);

}  // namespace fullbore
