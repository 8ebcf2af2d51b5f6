#include "fullbore/monitor/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fullbore/monitor/run_frame.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RunViewTest : public ::testing::Test {
 protected:
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::app) << text;
  }
  static std::string train(int64_t step, double loss) {
    return fmt::format(
               R"({{"kind":"train","step":{},"loss":{},"tokens_per_second":1000,"seconds":{}}})",
               step, loss, static_cast<double>(step) / 2) +
           "\n";
  }
  std::string frame(RunView& view, FrameSize size = {}, TextStyle style = {}) const {
    std::string text;
    const std::vector<std::string> lines = run_frame(view, size, style, 1000);
    EXPECT_LE(static_cast<int>(lines.size()), size.rows);
    for (const std::string& line : lines) {
      EXPECT_LE(display_width(line), size.columns) << line;
      text += line + '\n';
    }
    return text;
  }

  const fullbore::testing::ScratchFolder folder_;
};

TEST_F(RunViewTest, FollowsFilesThatGrowAndWaitsForTornLines) {
  RunView view(folder_.path(), 100);
  EXPECT_FALSE(view.update());
  append("metrics.jsonl", train(10, 3) + train(20, 2.5).substr(0, 20));
  view.update();
  EXPECT_EQ(view.progress().step, 10);
  append("metrics.jsonl", train(20, 2.5).substr(20) +
                              R"({"kind":"evaluation","step":20,"validation_loss":2.25})" + "\n");
  view.update();
  EXPECT_EQ(view.progress().step, 20);
  EXPECT_EQ(view.progress().validation_loss, 2.25);
  EXPECT_EQ(view.progress().step_seconds, 0.5);
  EXPECT_EQ(view.progress().seconds_left, 40);
  EXPECT_THAT(view.curves()[0].points, ElementsAre(std::pair(10.0, 3.0), std::pair(20.0, 2.5)));
}

TEST_F(RunViewTest, AFileThatWasCutIsReadAnew) {
  append("metrics.jsonl", train(10, 3) + train(20, 2.5) + train(30, 2));
  RunView view(folder_.path(), 100);
  view.update();
  folder_.put("metrics.jsonl", train(10, 3));  // resumed from a checkpoint of step 10
  view.update();
  EXPECT_EQ(view.progress().step, 10);
  EXPECT_EQ(view.curves()[0].points.size(), 1);
}

TEST_F(RunViewTest, SensorsAlarmsAndPhasesAreShown) {
  append("metrics.jsonl", train(10, 3) + train(20, 2.5));
  append(
      "metrics.jsonl",
      R"({"kind":"alarm","step":15,"cause":"swap","raised":true,"message":"\u001b[2J65 MiB swapped"})"
      "\n");
  append("metrics.jsonl",
         R"({"kind":"phases","step":20,"start_seconds":1,"data_seconds":-1,"step_seconds":3})"
         "\n");
  append("sensors.csv",
         "step,seconds,time,cpu0.utilization [%],cpu1.utilization [%],cpu.temperature "
         "[C],memory.total [MiB]\n"
         "10,1,970,50,100,61.5,2048\n20,2,980,,0,62,2048\n20,");
  append("summary.json", R"({"status":"running"})");
  RunView view(folder_.path(), 100);
  view.update();
  EXPECT_THAT(frame(view),
              AllOf(HasSubstr("running, no sign of life for 20"), HasSubstr("?0"),
                    HasSubstr("temperature 62 C"), HasSubstr("total 2.00 GiB"),
                    HasSubstr("time       step 75.0%  start 25.0%"),
                    HasSubstr("alarm step 15: \\x1b[2J65 MiB swapped"), Not(HasSubstr("\x1b"))));
  append("sensors-2.csv", "step,seconds,time,gpu0.power.draw [W]\n30,3,999,251.25\n");
  folder_.put("summary.json",
              R"({"status":"completed","phase_seconds":{"step":9,"data":1,"host":-1}})");
  view.update();
  EXPECT_THAT(frame(view),
              AllOf(HasSubstr("completed"), HasSubstr("time       step 90.0%  data 10.0%"),
                    HasSubstr("gpu0       power.draw 251.2 W"), Not(HasSubstr("temperature"))));
  EXPECT_THAT(frame(view, {.columns = 80, .rows = 24}, {.colour = true, .unicode = true}),
              HasSubstr("\x1b[31malarm"));
}

TEST_F(RunViewTest, WhatDoesNotFitGoes) {
  for (int i = 1; i < 50; ++i) append("metrics.jsonl", train(i, 3.0 / i));
  for (int i = 0; i < 5; ++i)
    append("metrics.jsonl",
           fmt::format(R"({{"kind":"alarm","step":{},"raised":true,"message":"hot"}})", i) + "\n");
  std::string header = "step,seconds,time";
  std::string row = "1,1,1";
  for (int i = 0; i < 100; ++i) {
    header += fmt::format(",g{}.figure", i);
    row += ",1";
  }
  append("sensors.csv", header + "\n" + row + "\n");
  RunView view(folder_.path(), 100);
  view.update();
  for (const int rows : {1, 2, 5, 12, 24, 60, 500})
    for (const int columns : {24, 80, 300}) frame(view, {.columns = columns, .rows = rows});
  EXPECT_THAT(frame(view, {.columns = 80, .rows = 12}),
              AllOf(HasSubstr("alarm step 4"), HasSubstr("training"), Not(HasSubstr("g99"))));
}

TEST_F(RunViewTest, GarbageIsPassedOver) {
  append("metrics.jsonl",
         "[1]\nnull\n{\"kind\":7}\n{\"kind\":\"train\",\"step\":-5}\n{\"kind\":\"train\",\"step\":"
         "1e300}\n"
         "{\"kind\":\"alarm\",\"step\":1,\"raised\":7,\"message\":[]}\n" +
             std::string(3 << 20, 'x') + "\n" + train(3, 1));
  append("sensors.csv", "no header\n1,2,3\n");
  append("summary.json", "{\"status\":{}}");
  RunView view(folder_.path(), 0);
  while (view.update()) continue;
  EXPECT_EQ(view.progress().step, 3);
  EXPECT_TRUE(view.sensor_titles().empty());
  frame(view);
}

TEST_F(RunViewTest, ARunThatIsRemovedIsGone) {
  RunView view(folder_.path(), 0);
  view.update();
  EXPECT_FALSE(view.is_gone());
  std::filesystem::remove_all(folder_.path());
  EXPECT_FALSE(view.update());
  EXPECT_TRUE(view.is_gone());
}

}  // namespace
}  // namespace fullbore
