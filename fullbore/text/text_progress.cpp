#include "fullbore/text/text_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fullbore/base/text.h"

namespace fullbore {

TextProgress text_progress(Console& console) {
  const auto start = std::chrono::steady_clock::now();
  return [&console, start](uint64_t done, uint64_t bytes) {
    if (!console.live_due()) return true;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const double rate = static_cast<double>(done) / passed.count();
    const double left = rate > 0 ? static_cast<double>(bytes - std::min(done, bytes)) / rate : 0;
    console.live(
        fmt::format("tokenising {} of {}  {}/s  {} left", bytes_text(static_cast<double>(done)),
                    bytes_text(static_cast<double>(bytes)), bytes_text(rate), duration_text(left)));
    return true;
  };
}

}  // namespace fullbore
