#include "fullbore/monitor/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "fullbore/base/printable.h"
#include "fullbore/base/write_stream.h"

namespace fullbore {
namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);
constexpr const char* kEraseLine = "\r\x1b[K";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The first of the three that is set decides, as setlocale(3) has it.
bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

/// What fits into so many columns; no code point is cut in two.
std::string_view first_columns(std::string_view text, int columns) {
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && columns-- <= 0)
      return text.substr(0, i);
  return text;
}

}  // namespace

Console::Console(int fd) : fd_(fd), terminal_(isatty(fd) == 1 && variable("TERM") != "dumb") {
  style_.colour = terminal_ && variable("NO_COLOR").empty();
  style_.unicode = terminal_ && utf8_locale();
}

int Console::width() const {
  winsize size{};
  if (ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Console::line(std::string_view text) {
  const std::string live = drawn_;
  clear();
  write(printable(text) + '\n');
  if (!live.empty()) draw(live);
}

bool Console::live_due(Clock::time_point now) const {
  return terminal_ && now - drawn_at_ >= kRedrawInterval;
}

void Console::live(const Progress& progress, Clock::time_point now) {
  if (!live_due(now)) return;
  drawn_at_ = now;
  // One column stays free: some terminals wrap when the last one is written.
  draw(progress_line(progress, width() - 1, style_));
}

void Console::live(std::string_view text) {
  if (terminal_) draw(first_columns(printable_name(text), width() - 1));
}

void Console::clear() {
  if (!drawn_.empty()) write(kEraseLine);
  drawn_.clear();
}

void Console::draw(std::string_view text) {
  write(kEraseLine + std::string(text));
  drawn_ = text;
}

void Console::write(std::string_view text) {
  const int reason = write_stream(fd_, text);
  if (reason != 0 && failure_.empty()) failure_ = std::generic_category().message(reason);
}

}  // namespace fullbore
