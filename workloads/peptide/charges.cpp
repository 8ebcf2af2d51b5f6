#include "workloads/peptide/charges.h"

#include <algorithm>
#include <charconv>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

std::optional<int> parse_charge(std::string_view text) {
  if (text.starts_with('+') || text.ends_with('+')) {
    text.ends_with('+') ? text.remove_suffix(1) : text.remove_prefix(1);
    if (text.starts_with('+')) return {};
  }
  if (text.ends_with(".0")) text.remove_suffix(2);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if (value < 1 || value > kMostCharge) return {};
  return value;
}

std::optional<std::vector<int>> parse_charges(std::string_view text) {
  constexpr std::string_view kBetween = " \t,;&";
  std::vector<int> charges;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return charges;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    if (same_ignoring_case(word, "and") || same_ignoring_case(word, "or")) continue;
    if (word == "0" || word == "0+") continue;
    const std::optional<int> charge = parse_charge(word);
    if (!charge || charges.size() == kMostCharge) return {};
    charges.push_back(*charge);
  }
}

}  // namespace fullbore::peptide
