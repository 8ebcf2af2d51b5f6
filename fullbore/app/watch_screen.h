#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/monitor/progress.h"
#include "fullbore/monitor/run_frame.h"

namespace fullbore {

/// The whole terminal, for as long as the object lives. watch_screen.cpp alone knows the library that draws (ncurses).
class WatchScreen {
 public:
  /// UsageError where TERM names a terminal that cannot be drawn on.
  WatchScreen();
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  FrameSize size() const;
  TextStyle style() const;
  /// Lines of text with the ANSI colours that run_frame() makes; `foot` below them.
  void draw(const std::vector<std::string>& lines, const std::string& foot);
  /// Waits for a key, or a change of size, but not longer. Whether to go on: false after q, Escape and Ctrl-C.
  bool goes_on(int milliseconds);

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace fullbore
