#include "fullbore/monitor/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Readings = std::vector<std::pair<std::string, double>>;

/// Samples a second apart, and what was told of them: "+swap" raised, "-swap" over.
class Watching {
 public:
  explicit Watching(const AlarmLimits& limits = {}) : watch_(limits) {}
  void sample(const Readings& readings, int64_t steps = 1, double seconds = 1) {
    std::vector<SensorReading> sensors;
    for (const auto& [name, value] : readings) sensors.push_back({name, "", value});
    step_ += steps;
    seconds_ += seconds;
    for (const Alarm& alarm : watch_.look(step_, seconds_, sensors)) {
      told.push_back((alarm.raised ? "+" : "-") + alarm.cause);
      message = alarm.message;
    }
  }
  std::vector<std::string> told;
  std::string message;

 private:
  AlarmWatch watch_;
  int64_t step_ = 0;
  double seconds_ = 100;
};

TEST(Alarms, HeatIsToldOnceUntilItHasClearlyFallen) {
  Watching watching({.cpu_celsius = 90});
  for (const double celsius : {80, 89, 90, 89, 95, 86, 91, 85, 89, 92})
    watching.sample({{"cpu.temperature", celsius}});
  EXPECT_THAT(watching.told,
              ElementsAre("+cpu temperature", "-cpu temperature", "+cpu temperature"));
  EXPECT_THAT(watching.message, HasSubstr("92 C (alarms.cpu_celsius=90)"));
}

TEST(Alarms, WhatCannotBeReadRaisesAndClearsNothing) {
  Watching watching({.gpu_celsius = 80});
  watching.sample({{"gpu0.temperature.gpu", 20}, {"gpu1.temperature.gpu", 81}});
  watching.sample({{"gpu0.temperature.gpu", NAN}, {"gpu1.temperature.gpu", NAN}});
  watching.sample({});
  EXPECT_THAT(watching.told, ElementsAre("+gpu temperature"));
}

TEST(Alarms, ALimitOfZeroIsNone) {
  Watching watching({.cpu_celsius = 0,
                     .throttling = false,
                     .oversubscribed_seconds = 0,
                     .swap_mib = 0,
                     .disk_hours = 0,
                     .growth_mib = 0});
  for (int i = 0; i < 2000; ++i)
    watching.sample({{"cpu.temperature", 200},
                     {"cpu.power.draw", 9000},
                     {"cpu.throttle", i},
                     {"cpu.runnable", 99},
                     {"cpu.online", 1},
                     {"process.memory.swapped", 1e6},
                     {"disk.free", 3000 - i},
                     {"process.memory.resident", i}});
  EXPECT_THAT(watching.told, IsEmpty());
}

TEST(Alarms, PowerIsThatOfAllTogether) {
  Watching watching({.watts = 300});
  watching.sample({{"cpu.power.draw", 60}, {"gpu0.power.draw", 100}, {"gpu1.power.draw", 100}});
  EXPECT_THAT(watching.told, IsEmpty());
  watching.sample({{"cpu.power.draw", 60}, {"gpu0.power.draw", 140}, {"gpu1.power.draw", 100}});
  watching.sample({{"cpu.power.draw", 60}, {"gpu0.power.draw", 120}, {"gpu1.power.draw", 100}});
  watching.sample({{"cpu.power.draw", 60}, {"gpu0.power.draw", 100}, {"gpu1.power.draw", 100}});
  EXPECT_THAT(watching.told, ElementsAre("+power", "-power"));
}

TEST(Alarms, ThrottlingIsOverAfterAMinuteOfRest) {
  Watching watching;
  double events = 7;
  for (int i = 0; i < 200; ++i) {
    if (i == 20 || i == 60) ++events;
    watching.sample({{"cpu.throttle", events}});
    if (i == 119) {
      EXPECT_THAT(watching.told, ElementsAre("+throttling"));
    }
  }
  EXPECT_THAT(watching.told, ElementsAre("+throttling", "-throttling"));
  watching.sample({{"cpu.throttle", events}, {"gpu3.throttled", 1}});
  EXPECT_THAT(watching.message, HasSubstr("gpu3 is slowed down"));
  Watching group;
  for (int i = 0; i < 10; ++i) group.sample({{"group.cpu.throttled", 0.05 * i}});
  EXPECT_THAT(group.told, IsEmpty());
  group.sample({{"group.cpu.throttled", 1.5}});
  EXPECT_THAT(group.message, HasSubstr("quota"));
}

TEST(Alarms, MoreThreadsThanProcessorsForAWhile) {
  Watching busy({.oversubscribed_seconds = 30});
  // As many as there are processors, the sampler, and now and then one that loads data.
  for (int i = 0; i < 300; ++i)
    busy.sample({{"cpu.online", 4}, {"cpu.runnable", i % 3 == 0 ? 6 : 5}});
  EXPECT_THAT(busy.told, IsEmpty());
  for (int i = 0; i < 40; ++i) busy.sample({{"cpu.online", 4}, {"cpu.runnable", 9}});
  for (int i = 0; i < 100; ++i) busy.sample({{"cpu.online", 4}, {"cpu.runnable", 5}});
  EXPECT_THAT(busy.told, ElementsAre("+oversubscription", "-oversubscription"));
  Watching shortly({.oversubscribed_seconds = 30});
  for (int i = 0; i < 29; ++i) shortly.sample({{"cpu.online", 4}, {"cpu.runnable", 9}});
  EXPECT_THAT(shortly.told, IsEmpty());
}

TEST(Alarms, SwapAndDisk) {
  Watching watching({.swap_mib = 64, .disk_hours = 1});
  for (const double mib : {0, 63, 65, 40, 70, 30})
    watching.sample({{"process.memory.swapped", mib}});
  EXPECT_THAT(watching.told, ElementsAre("+swap", "-swap"));
  // A checkpoint now and then, of which old ones are removed, is no filling disk.
  Watching steady({.disk_hours = 1});
  for (int i = 0; i < 3000; ++i) steady.sample({{"disk.free", 2000.0 - (i % 60 < 30 ? 500 : 0)}});
  EXPECT_THAT(steady.told, IsEmpty());
  Watching filling({.disk_hours = 1});
  double free = 10000;  // and 2 MiB a second: full in 83 minutes
  for (int i = 0; i < 600; ++i) filling.sample({{"disk.free", free -= 2}});
  EXPECT_THAT(filling.told, IsEmpty());
  for (int i = 0; i < 1500; ++i) filling.sample({{"disk.free", free -= 2}});
  EXPECT_THAT(filling.told, ElementsAre("+disk"));
  EXPECT_THAT(filling.message, HasSubstr("full in"));
  for (int i = 0; i < 1000; ++i) filling.sample({{"disk.free", free}});
  EXPECT_THAT(filling.told, ElementsAre("+disk", "-disk"));
}

/// Resident memory of a run: `leak` MiB in 1,000 steps, and noise.
std::vector<std::string> told_of_growth(double leak, double noise, int64_t steps_of_sample,
                                        uint64_t seed) {
  Watching watching({.growth_mib = 64});
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  double step = 0;
  for (int i = 0; i < 400 || step < 2500; ++i) {
    step += static_cast<double>(steps_of_sample);
    double mib = 500 + leak * step / 1000 + noise * normal(random);
    if (i > 3) mib += 300;        // caches that the first steps have filled
    if (i > 200) mib += 150;      // an evaluation's buffers, from now on
    if (i % 10 == 0) mib += 400;  // a checkpoint is being written
    watching.sample({{"process.memory.resident", mib}}, steps_of_sample);
  }
  return watching.told;
}

TEST(Alarms, ALeakIsFoundAtAnyPace) {
  for (const int64_t pace : {3, 20, 500})
    for (uint64_t seed = 0; seed < 6; ++seed)
      EXPECT_THAT(told_of_growth(200, 10, pace, seed), ElementsAre("+memory growth"))
          << pace << " " << seed;
}

TEST(Alarms, NoiseStepsAndSmallLeaksAreNone) {
  for (const int64_t pace : {3, 20, 500})
    for (uint64_t seed = 0; seed < 6; ++seed) {
      EXPECT_THAT(told_of_growth(0, 30, pace, seed), IsEmpty()) << pace << " " << seed;
      EXPECT_THAT(told_of_growth(20, 5, pace, seed), IsEmpty()) << pace << " " << seed;
    }
}

}  // namespace
}  // namespace fullbore
