#include "fullbore/monitor/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

struct Field {
  std::string text;
  int priority = 0;  ///< the lowest goes first when the line is too long
  const char* colour = "";
};

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kCyan = "\x1b[36m";
constexpr const char* kReset = "\x1b[0m";
constexpr int kGap = 2;
constexpr int kLongestBar = 28;
constexpr int kShortestBar = 8;

std::string memory_text(const Progress& progress) {
  std::string text = bytes_text(static_cast<double>(progress.resident_bytes));
  if (progress.planned_bytes >= 0)
    text += fmt::format(" ({} planned)", bytes_text(static_cast<double>(progress.planned_bytes)));
  return text;
}

/// "41.3 ms/step", "2.31 s/step": three digits.
std::string step_time_text(double seconds) {
  const double shown = seconds < 1 ? seconds * 1e3 : seconds;
  const int digits = shown < 10 ? 2 : shown < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}/step", shown, digits, seconds < 1 ? "ms" : "s");
}

/// Every field that is known, in the order of display.
std::vector<Field> fields(const Progress& progress) {
  std::vector<Field> list;
  if (!progress.phase.empty()) list.push_back({progress.phase, 7, kDim});
  if (progress.total_steps > 0)
    list.push_back({fmt::format("step {}/{}", progress.step, progress.total_steps), 10, ""});
  if (!std::isnan(progress.train_loss))
    list.push_back({fmt::format("loss {:.4f}", progress.train_loss), 9, kBold});
  if (!std::isnan(progress.validation_loss))
    list.push_back({fmt::format("val {:.4f}", progress.validation_loss), 8, kBold});
  if (!progress.figures.empty()) list.push_back({progress.figures, 7, ""});
  for (const auto& [name, share] : progress.shares)
    if (!std::isnan(share)) list.push_back({fmt::format("{} {:.1f}%", name, share * 100), 7, ""});
  if (progress.step_seconds >= 0 && std::isfinite(progress.step_seconds))
    list.push_back({step_time_text(progress.step_seconds), 4, ""});
  if (!progress.sample_unit.empty() && progress.samples_per_second >= 0)
    list.push_back(
        {fmt::format("{} {}/s", count_text(progress.samples_per_second), progress.sample_unit), 5,
         ""});
  if (progress.sample_unit.empty() && progress.tokens_per_second >= 0)
    list.push_back({fmt::format("{} tok/s", count_text(progress.tokens_per_second)), 5, ""});
  if (progress.utilisation >= 0)
    list.push_back({fmt::format("{:.1f}% of peak", progress.utilisation * 100), 3, ""});
  if (progress.resident_bytes >= 0) list.push_back({memory_text(progress), 2, kDim});
  if (progress.data_wait_share >= 0)
    list.push_back({fmt::format("wait {:.1f}%", progress.data_wait_share * 100), 1, kDim});
  if (progress.seconds_left >= 0)
    list.push_back({fmt::format("{} left", duration_text(progress.seconds_left)), 6, ""});
  return list;
}

int total_width(const std::vector<Field>& list) {
  int width = 0;
  for (const Field& field : list) width += display_width(field.text) + kGap;
  return std::max(0, width - kGap);
}

std::string paint(const std::string& text, const char* colour, TextStyle style) {
  return style.colour && *colour != '\0' ? colour + text + kReset : text;
}

/// "━━━━━╸────" or "=====>----": `width` columns filled to `share`, to half a column in UTF-8.
std::string bar(double share, int width, TextStyle style) {
  const char* full = style.unicode ? "━" : "=";
  const char* half = style.unicode ? "╸" : ">";
  const char* empty = style.unicode ? "─" : "-";
  const double filled = std::clamp(share, 0.0, 1.0) * width;
  const int whole = static_cast<int>(filled);
  std::string done;
  for (int i = 0; i < whole; ++i) done += full;
  const bool has_half = whole < width && filled - whole >= 0.5;
  if (has_half) done += half;
  std::string rest;
  for (int i = whole + (has_half ? 1 : 0); i < width; ++i) rest += empty;
  return paint(done, kCyan, style) + paint(rest, kDim, style);
}

}  // namespace

int display_width(const std::string& text) {
  int width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) ++width;  // not a continuation
  }
  return width;
}

std::string progress_line(const Progress& progress, int width, TextStyle style) {
  std::vector<Field> list = fields(progress);
  while (list.size() > 1 && total_width(list) > width)
    list.erase(std::min_element(list.begin(), list.end(), [](const Field& a, const Field& b) {
      return a.priority < b.priority;
    }));
  if (total_width(list) > width) return list.front().text.substr(0, static_cast<size_t>(width));

  std::string line;
  const int spare = width - total_width(list) - kGap;
  if (progress.total_steps > 0 && spare >= kShortestBar) {
    const double share =
        static_cast<double>(progress.step) / static_cast<double>(progress.total_steps);
    line = bar(share, std::min(spare, kLongestBar), style);
  }
  for (const Field& field : list) {
    if (!line.empty()) line.append(kGap, ' ');
    line += paint(field.text, field.colour, style);
  }
  return line;
}

std::string progress_text(const Progress& progress) {
  std::string text;
  for (const Field& field : fields(progress)) {
    if (!text.empty()) text.append(kGap, ' ');
    text += field.text;
  }
  return text;
}

}  // namespace fullbore
