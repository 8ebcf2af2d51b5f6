#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

/// "2", "2+", "+2", "2.0"; nothing for a number out of [1, kMostCharge] or of negative ions.
std::optional<int> parse_charge(std::string_view text);
/// All of "2+ and 3+", "2+,3+", "2", and none of "" or "0", by which converters say that they do not know. Nothing
/// where any of them is no charge.
std::optional<std::vector<int>> parse_charges(std::string_view text);

}  // namespace fullbore::peptide
