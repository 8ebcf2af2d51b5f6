#include "fullbore/monitor/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Progress everything() {
  return {.phase = "",
          .step = 840,
          .total_steps = 2000,
          .train_loss = 2.13456,
          .validation_loss = 2.20111,
          .step_seconds = 0.04132,
          .tokens_per_second = 51234,
          .utilisation = 0.634,
          .resident_bytes = 312 << 20,
          .planned_bytes = 298 << 20,
          .data_wait_share = 0.003,
          .seconds_left = 72};
}

TEST(Progress, TextNamesEveryField) {
  EXPECT_EQ(progress_text(everything()),
            "step 840/2000  loss 2.1346  val 2.2011  41.3 ms/step  51.2 K tok/s  63.4% of peak  "
            "312.0 MiB (298.0 MiB planned)  wait 0.3%  1m12s left");
}

TEST(Progress, WhatIsNotKnownIsNotShown) {
  EXPECT_EQ(progress_text({.phase = "", .step = 0, .total_steps = 10}), "step 0/10");
  EXPECT_EQ(progress_text({.phase = "evaluating 1/4", .step = 5, .total_steps = 10}),
            "evaluating 1/4  step 5/10");
}

TEST(Progress, TheTimeOfAStepHasThreeDigits) {
  const auto text = [](double seconds) {
    return progress_text({.phase = "", .step_seconds = seconds});
  };
  EXPECT_EQ(text(0.00123), "1.23 ms/step");
  EXPECT_EQ(text(0.4567), "457 ms/step");
  EXPECT_EQ(text(12.34), "12.3 s/step");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "");
}

TEST(Progress, LineFitsEveryWidth) {
  for (const bool unicode : {false, true})
    for (const bool colour : {false, true})
      for (int width = 1; width <= 200; ++width) {
        const std::string line = progress_line(everything(), width, {colour, unicode});
        EXPECT_LE(display_width(line), width) << line;
        EXPECT_GT(display_width(line), 0) << width;
      }
}

TEST(Progress, LeastImportantFieldsGoFirst) {
  const std::string wide = progress_line(everything(), 200);
  EXPECT_THAT(wide, HasSubstr(progress_text(everything())));
  EXPECT_THAT(wide, HasSubstr("===>-")) << "no bar";
  const std::string middle = progress_line(everything(), 79);
  EXPECT_THAT(middle, Not(HasSubstr("wait")));
  EXPECT_THAT(middle, HasSubstr("left"));
  const std::string narrow = progress_line(everything(), 30);
  EXPECT_EQ(narrow, "step 840/2000  loss 2.1346");
}

TEST(Progress, BarFillsWithTheSteps) {
  Progress progress = {.phase = "", .step = 0, .total_steps = 4};
  EXPECT_EQ(progress_line(progress, 18), "--------  step 0/4");
  progress.step = 2;
  EXPECT_EQ(progress_line(progress, 18), "====----  step 2/4");
  progress.step = 4;
  EXPECT_EQ(progress_line(progress, 18), "========  step 4/4");
  EXPECT_EQ(progress_line(progress, 18, {.colour = false, .unicode = true}), "━━━━━━━━  step 4/4");
}

TEST(Progress, EscapesOnlyWithColour) {
  EXPECT_THAT(progress_line(everything(), 120), Not(HasSubstr("\x1b")));
  EXPECT_THAT(progress_line(everything(), 120, {.colour = true, .unicode = false}),
              HasSubstr("\x1b["));
}

TEST(Progress, WidthCountsCodePointsOutsideOfEscapes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("━╸─"), 3);
  EXPECT_EQ(display_width("\x1b[36m━━\x1b[0m ab"), 5);
}

}  // namespace
}  // namespace fullbore
