#include "fullbore/monitor/sensor_text.h"

#include <charconv>
#include <cmath>

namespace fullbore {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kSpace = " \t\n";

/// Takes the next word of a text.
std::string_view next_word(std::string_view& text, std::string_view ends = kSpace) {
  text.remove_prefix(std::min(text.find_first_not_of(ends), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

template <typename Number>
std::optional<Number> whole(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return number;
}

std::optional<int64_t> count(std::string_view word) {
  const std::optional<int64_t> number = whole<int64_t>(word);
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<int64_t> next_count(std::string_view& text) {
  return count(next_word(text, kBlanks));
}

/// "1.23" of "avg10=1.23", in [0, 100].
std::optional<double> share(std::string_view word, std::string_view key) {
  if (!word.starts_with(key)) return {};
  word.remove_prefix(key.size());
  // Digits and a point alone: no sign, no exponent, nothing that is not a number.
  if (word.empty() || word.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  const std::optional<double> number = whole<double>(word);
  return number && *number <= 100 ? number : std::nullopt;
}

/// Of the numbers behind "cpu": user nice system idle iowait irq softirq steal; guests are counted within user.
std::optional<ProcessorTicks> processor_ticks(std::string_view numbers) {
  constexpr int kLeast = 4;
  constexpr int kCounted = 8;
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;
  constexpr int64_t kMost = int64_t{1} << 58;  // so that a sum of eight fits
  ProcessorTicks ticks;
  for (int i = 0; i < kCounted; ++i) {
    const std::string_view word = next_word(numbers, kBlanks);
    if (word.empty() && i >= kLeast) break;
    const std::optional<int64_t> number = count(word);
    if (!number || *number > kMost) return {};
    ticks.total += *number;
    if (i != kIdle && i != kWaiting) ticks.busy += *number;
  }
  return ticks;
}

}  // namespace

std::optional<int64_t> parse_count(std::string_view text) {
  const std::optional<int64_t> number = count(next_word(text));
  return next_word(text).empty() ? number : std::nullopt;
}

std::optional<double> parse_celsius(std::string_view text) {
  const std::optional<int64_t> number = whole<int64_t>(next_word(text));
  if (!number || !next_word(text).empty()) return {};
  return static_cast<double>(*number) / 1000;
}

std::optional<int64_t> parse_keyed(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    std::string_view word = next_word(line, kBlanks);
    if (word.ends_with(':')) word.remove_suffix(1);
    if (word != key) continue;
    const std::optional<int64_t> number = next_count(line);
    const std::string_view unit = next_word(line, kBlanks);
    return (unit.empty() || unit == "kB") && next_word(line, kBlanks).empty() ? number
                                                                              : std::nullopt;
  }
  return {};
}

std::optional<Pressure> parse_pressure(std::string_view text) {
  std::optional<Pressure> pressure;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    const std::string_view kind = next_word(line, kBlanks);
    const std::optional<double> number = share(next_word(line, kBlanks), "avg10=");
    if (!number) return {};
    if (kind == "some" && !pressure)
      pressure = Pressure{.some = *number};
    else if (kind == "full" && pressure)
      pressure->full = number;
    else
      return {};
  }
  return pressure;
}

std::optional<ProcessorTimes> parse_processor_times(std::string_view text) {
  ProcessorTimes times;
  bool has_all = false;
  bool has_runnable = false;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    const std::string_view key = next_word(line, kBlanks);
    if (key == "procs_running") {
      const std::optional<int64_t> number = next_count(line);
      if (!number) return {};
      times.runnable = *number;
      has_runnable = true;
    } else if (key.starts_with("cpu")) {
      const std::optional<ProcessorTicks> ticks = processor_ticks(line);
      if (!ticks) return {};
      if (key == "cpu") {
        times.all = *ticks;
        has_all = true;
        continue;
      }
      const std::optional<int64_t> number = count(key.substr(3));
      if (!number) return {};
      times.each.push_back({*number, *ticks});
    }
  }
  return has_all && has_runnable ? std::optional(std::move(times)) : std::nullopt;
}

std::optional<ProcessTimes> parse_process_times(std::string_view text) {
  // The name in parentheses may hold anything. Behind it come the state and numbers; those of user and kernel time are
  // the 12th and 13th words, that of threads the 18th.
  const size_t end = text.rfind(')');
  if (end == std::string_view::npos) return {};
  text.remove_prefix(end + 1);
  constexpr int64_t kMost = int64_t{1} << 61;
  std::optional<int64_t> user, system, threads;
  for (int i = 1; i <= 18; ++i) {
    const std::string_view word = next_word(text);
    if (i == 12) user = count(word);
    if (i == 13) system = count(word);
    if (i == 18) threads = count(word);
  }
  if (!user || !system || !threads || *user > kMost || *system > kMost) return {};
  return ProcessTimes{.ticks = *user + *system, .threads = *threads};
}

}  // namespace fullbore
