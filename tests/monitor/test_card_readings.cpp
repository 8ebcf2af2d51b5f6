#include "fullbore/monitor/card_readings.h"

#include <gmock/gmock.h>

#include <limits>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TEST(CardReadings, OfEachDeviceAreOneLine) {
  const std::vector<SensorReading> readings = {
      {"cpu.utilization", "%", 50},      {"gpu0.utilization.gpu", "%", 93},
      {"gpu0.memory.used", "MiB", 812},  {"gpu0.memory.total", "MiB", 81559},
      {"gpu0.temperature.gpu", "C", 61}, {"gpu0.power.draw", "W", 412.4},
      {"gpu0.energy", "J", 7},           {"gpu0.clocks.sm", "MHz", 1980},
      {"gpu0.throttled", "", 0},         {"gpu1.utilization.gpu", "%", 0},
      {"gpu1.throttled", "", 1}};
  EXPECT_THAT(card_lines(readings),
              ElementsAre("gpu0: utilization 93 %, memory 812 of 81559 MiB, 412 W, 1980 MHz, 61 C",
                          "gpu1: utilization 0 %, slowed down by heat or a limit"));
}

TEST(CardReadings, WhatIsNotKnownIsLeftOut) {
  const std::vector<SensorReading> readings = {
      {"gpu0.utilization.gpu", "%", kUnknown, "Not Supported"},
      {"gpu0.memory.used", "MiB", 812},
      {"gpu0.power.draw", "W", 40},
      {"gpu1.clocks.sm", "MHz", kUnknown, "GPU is lost"}};
  EXPECT_THAT(card_lines(readings), ElementsAre("gpu0: 40 W"));
  const std::vector<SensorReading> none = {{"gpu", "", kUnknown, "no library"}};
  EXPECT_THAT(card_lines(none), IsEmpty());
}

}  // namespace
}  // namespace fullbore
