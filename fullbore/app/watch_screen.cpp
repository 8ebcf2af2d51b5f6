#include "fullbore/app/watch_screen.h"

#define NCURSES_WIDECHAR 1
#include <fmt/format.h>
#include <langinfo.h>
#include <ncurses.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cstdlib>
#include <string_view>

#include "fullbore/base/error.h"

namespace fullbore {
namespace {

constexpr int kFirstColour = 30;  // of ANSI escapes: black; seven more follow
constexpr int kColours = 8;

/// The attributes that "\x1b[36m" and its like ask for.
void set_attributes(std::string_view code) {
  int number = 0;
  std::from_chars(code.data(), code.data() + code.size(), number);
  if (number == 0)
    attrset(A_NORMAL);
  else if (number == 1)
    attron(A_BOLD);
  else if (number == 2)
    attron(A_DIM);
  else if (number >= kFirstColour && number < kFirstColour + kColours)
    attron(COLOR_PAIR(number - kFirstColour + 1));
}

void draw_line(int row, std::string_view line) {
  move(row, 0);
  attrset(A_NORMAL);
  while (!line.empty()) {
    const size_t escape = std::min(line.find("\x1b["), line.size());
    if (escape > 0) addnstr(line.data(), static_cast<int>(escape));
    line.remove_prefix(escape);
    if (line.empty()) break;
    const size_t end = line.find('m');
    if (end == std::string_view::npos) break;
    set_attributes(line.substr(2, end - 2));
    line.remove_prefix(end + 1);
  }
  attrset(A_NORMAL);
  clrtoeol();
}

}  // namespace

struct WatchScreen::Terminal {
  SCREEN* screen = nullptr;
  bool unicode = false;
};

WatchScreen::WatchScreen() : terminal_(std::make_unique<Terminal>()) {
  std::setlocale(LC_CTYPE, "");
  terminal_->unicode = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  terminal_->screen = newterm(nullptr, stdout, stdin);
  if (terminal_->screen == nullptr) {
    const char* const name = std::getenv("TERM");
    throw UsageError(fmt::format(
        "watch: a terminal of TERM={} cannot be drawn on: add --once for one page of text",
        name == nullptr ? "" : name));
  }
  raw();  // Ctrl-C is a key: the terminal is given back as it was
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  set_escdelay(50);
  curs_set(0);
  if (has_colors()) {
    start_color();
    use_default_colors();
    for (int colour = 0; colour < kColours; ++colour)
      init_pair(static_cast<short>(colour + 1), static_cast<short>(colour), -1);
  }
}

WatchScreen::~WatchScreen() {
  if (terminal_->screen == nullptr) return;
  endwin();
  delscreen(terminal_->screen);
}

FrameSize WatchScreen::size() const {
  int rows = 0;
  int columns = 0;
  getmaxyx(stdscr, rows, columns);
  return {.columns = columns, .rows = rows};
}

TextStyle WatchScreen::style() const {
  const char* const no_colour = std::getenv("NO_COLOR");
  return {.colour = has_colors() && (no_colour == nullptr || *no_colour == '\0'),
          .unicode = terminal_->unicode};
}

void WatchScreen::draw(const std::vector<std::string>& lines, const std::string& foot) {
  const FrameSize now = size();
  erase();
  for (int row = 0; row < now.rows - 1 && row < static_cast<int>(lines.size()); ++row)
    draw_line(row, lines[static_cast<size_t>(row)]);
  attron(A_DIM);
  mvaddnstr(now.rows - 1, 0, foot.c_str(), std::max(now.columns - 1, 0));
  attrset(A_NORMAL);
  refresh();
}

bool WatchScreen::goes_on(int milliseconds) {
  constexpr int kEscape = 27;
  constexpr int kControlC = 3;
  timeout(milliseconds);
  const int key = getch();
  return key != 'q' && key != 'Q' && key != kEscape && key != kControlC;
}

}  // namespace fullbore
