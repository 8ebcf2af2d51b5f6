#pragma once
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore {

using Arguments = std::vector<std::string>;

// A colour, the bell, an erased screen by the one-character CSI of C1, and DEL.
inline const std::string kPlanted =
    "\x1b[31m\x07\xc2\x9b"
    "2J\x7f";
// The same for JSON and for YAML in double quotes.
inline const std::string kPlantedJson = "\\u001b[31m\\u0007\\u009b2J\\u007f";

/// Where a text holds what a terminal would obey; "" if nowhere.
inline std::string steering(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0U) == 0x80;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || is_c1)
      return fmt::format("byte {:#x} behind '{}'", byte, text.substr(i < 80 ? 0 : i - 80, 80));
  }
  return "";
}

/// What a stranger writes into files never steers the terminal of who looks at them.
class ControlBytesTest : public JobTest {
 protected:
  /// Runs the command, whatever its exit code: nothing of it steers, and what was planted is shown in escapes.
  void expect_escaped(const Arguments& arguments, bool is_shown = true) const {
    const CommandResult result = command(arguments);
    SCOPED_TRACE(fmt::format("{} ... {}: exit code {}\n{}{}", arguments.front(), arguments.back(),
                             result.exit_code, result.out, result.err));
    EXPECT_NE(result.exit_code, 1);
    EXPECT_LT(result.exit_code, 76);
    EXPECT_EQ(steering(result.out), "");
    EXPECT_EQ(steering(result.err), "");
    if (!is_shown) return;
    const std::string all = result.out + result.err;
    EXPECT_TRUE(all.find("\\x1b[31m\\x07") != std::string::npos ||
                all.find("\\u001b[31m\\u0007") != std::string::npos);
  }
  void put_run(const std::string& name) const {
    ASSERT_EQ(train({"run.dir=" + name, "train.steps=2", "train.checkpoint_interval=1"}).exit_code,
              0);
  }
};

}  // namespace fullbore
