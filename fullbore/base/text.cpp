#include "fullbore/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fullbore {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string scaled(double value, double base, const char* const* units, int count) {
  int unit = 0;
  while (std::abs(value) >= base && unit + 1 < count) {
    value /= base;
    ++unit;
  }
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}{}", value, units[0]);
  return fmt::format("{:.{}f}{}", value, std::abs(value) < 10 ? 2 : 1, units[unit]);
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : fmt::format(" Did you mean '{}'?", nearest);
}

size_t pattern_distance(std::string_view pattern, std::string_view name) {
  std::vector<size_t> row(name.size() + 1);
  for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
  for (const char p : pattern) {
    size_t diagonal = row[0];
    if (p != '*') ++row[0];
    for (size_t j = 1; j <= name.size(); ++j) {
      const size_t above = row[j];
      if (p == '*')
        row[j] = std::min(above, row[j - 1]);
      else
        row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (p != '?' && p != name[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != text.npos; begin = at + from.size()) {
    result += text.substr(begin, at - begin);
    result += to;
  }
  return result += text.substr(begin);
}

std::string bytes_text(double bytes) {
  static const char* const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(bytes, 1024, units, 5);
}

std::string count_text(double count) {
  static const char* const units[] = {"", " K", " M", " G", " T", " P"};
  return scaled(count, 1000, units, 6);
}

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f}ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}m{:02d}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02d}m", whole / 3600, whole / 60 % 60);
}

}  // namespace fullbore
