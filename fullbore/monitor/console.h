#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "fullbore/monitor/progress.h"

namespace fullbore {

/// The end of the user's wire: permanent lines, and on a terminal one live line below them that is
/// redrawn in place. Elsewhere (a file, a pipe) only lines, and no escapes.
///
/// Colours and line drawing follow the environment: none with NO_COLOR (https://no-color.org) or
/// TERM=dumb, ASCII where the locale is not UTF-8.
class Console {
 public:
  using Clock = std::chrono::steady_clock;

  /// `fd` stays the caller's. By default stderr: stdout is for results.
  explicit Console(int fd = 2);
  ~Console() { clear(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool terminal() const { return terminal_; }
  TextStyle style() const { return style_; }
  int width() const;  ///< columns of the terminal now; 80 where there is none

  /// Writes a line that stays. Control characters are written as text here and in live(): names of files,
  /// tensors and spectra are anybody's.
  void line(std::string_view text);
  /// Would live() draw? Not on a screen that is none, nor within 0.1 s of the last time.
  bool live_due(Clock::time_point now = Clock::now()) const;
  /// Redraws the live line if it is due.
  void live(const Progress& progress, Clock::time_point now = Clock::now());
  /// The same with words of one's own, at once: "compiling the training step".
  void live(std::string_view text);
  /// Takes the live line away.
  void clear();
  /// Why the first line that could not be written was lost, "Broken pipe"; "" if none was. Writing goes on,
  /// and whoever owns the run decides what a lost line means.
  const std::string& failure() const { return failure_; }

 private:
  void draw(std::string_view text);
  void write(std::string_view text);

  int fd_;
  bool terminal_;
  TextStyle style_;
  std::string drawn_;  ///< the live line that is on the screen
  Clock::time_point drawn_at_{};
  std::string failure_;
};

}  // namespace fullbore
