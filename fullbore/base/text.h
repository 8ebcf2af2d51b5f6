#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// The candidate with the smallest edit distance to `word`, or "" if none is near enough (distance
/// above a third of the length, and above 2) to be what was meant.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// " Did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// Fewest insertions, deletions and substitutions that make `name` match the pattern, in which `*`
/// stands for any characters and `?` for one; 0: it matches.
size_t pattern_distance(std::string_view pattern, std::string_view name);

/// Every `from` (not empty) becomes `to`, from left to right.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// "1.5 KiB", "3.2 GiB": binary multiples.
std::string bytes_text(double bytes);
/// "12.3 M", "4.56 G": decimal multiples, for counts and rates.
std::string count_text(double count);
/// "1h02m", "3m05s", "12.3s", "45ms".
std::string duration_text(double seconds);

}  // namespace fullbore
