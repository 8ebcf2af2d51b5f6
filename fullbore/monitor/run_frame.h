#pragma once
#include <string>
#include <vector>

#include "fullbore/monitor/progress.h"
#include "fullbore/monitor/run_view.h"

namespace fullbore {

struct FrameSize {
  int columns = 80;
  int rows = 24;
};

/// A run as a page of text of so many columns and at most so many rows: where it stands, curves of its losses, what its time
/// went to, sensors, and the last alarms. What does not fit goes: sensors first, then alarms but the last. ANSI colours where
/// `style` has them. `now`: seconds since 1970.
std::vector<std::string> run_frame(const RunView& view, FrameSize size, TextStyle style,
                                   double now);

}  // namespace fullbore
