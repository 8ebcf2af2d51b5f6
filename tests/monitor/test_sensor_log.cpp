#include "fullbore/monitor/sensor_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/monitor/sensor_file.h"
#include "fullbore/monitor/sensor_summary.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SensorLogTest : public ::testing::Test {
 protected:
  SensorLogTest() { temperature("50000"); }
  void temperature(const std::string& milli, int chip = 0) const {
    const std::string folder = root_.path() + "/sys/class/hwmon/hwmon" + std::to_string(chip);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/name") << "coretemp\n";
    std::ofstream(folder + "/temp1_input") << milli << "\n";
  }
  std::string run() const {
    std::filesystem::create_directories(root_ / "run");
    return root_ / "run";
  }
  std::string text(const std::string& name) const {
    return read_file(run() + "/" + name).take_or_throw();
  }
  std::unique_ptr<SensorLog> open(int64_t step, FileSystem& files = system_files()) const {
    return SensorLog::open(run(), options_, step, SensorLog::Clock::now(), files).take_or_throw();
  }

  const fullbore::testing::ScratchFolder root_;
  SensorLogOptions options_{.interval_seconds = 3600,
                            .alarms = {.cpu_celsius = 90},
                            .sensors = {.root = root_.path(), .nvml = root_ / "none"}};
};

TEST_F(SensorLogTest, KeepsASampleAtTheStartAndAtTheEnd) {
  {
    const auto log = open(7);
    log->at_step(19);
    temperature("61500");
  }
  EXPECT_THAT(text("sensors.csv"),
              StartsWith("step,seconds,time,cpu.temperature [C],disk.free [MiB]\n7,0"));
  const SensorTable table = read_sensor_file(run() + "/sensors.csv").take_or_throw();
  ASSERT_EQ(table.rows.size(), 2);
  EXPECT_EQ(table.rows[1].step, 19);
  EXPECT_EQ(table.rows[0].values[0], 50);
  EXPECT_EQ(table.rows[1].values[0], 61.5);
  EXPECT_GT(table.rows[1].time, 1.7e9);
  EXPECT_GE(table.rows[1].seconds, table.rows[0].seconds);
}

TEST_F(SensorLogTest, SamplesAtItsInterval) {
  options_.interval_seconds = 0.01;
  const auto log = open(0);
  while (text("sensors.csv").size() < 1000)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(log->lost(), 0);
}

TEST_F(SensorLogTest, AResumedRunGoesOnInTheSameFile) {
  open(0);
  std::ofstream(run() + "/sensors.csv", std::ios::app) << "12,3.5";  // a crash tore the last line
  open(5);
  const SensorTable table = read_sensor_file(run() + "/sensors.csv").take_or_throw();
  EXPECT_EQ(table.rows.size(), 4);
  EXPECT_EQ(table.damaged, 1);
  EXPECT_FALSE(std::filesystem::exists(run() + "/sensors-2.csv"));
}

TEST_F(SensorLogTest, OtherHardwareGetsAFileOfItsOwn) {
  open(0);
  std::filesystem::create_directories(root_.path() + "/proc");
  std::ofstream(root_.path() + "/proc/meminfo") << "MemTotal: 1024 kB\n";
  open(5);
  EXPECT_THAT(text("sensors-2.csv"), HasSubstr("cpu.temperature [C],memory.total [MiB]"));
  std::filesystem::remove(root_.path() + "/proc/meminfo");
  open(9);
  EXPECT_EQ(read_sensor_file(run() + "/sensors.csv").take_or_throw().rows.size(), 4);
}

TEST_F(SensorLogTest, AFullDiskCostsTheSamplesAndIsToldOnce) {
  for (int n = 3; n < 8; ++n) {
    fullbore::testing::FaultyFiles files;
    std::filesystem::remove_all(run());
    files.fail_at(n, ENOSPC);
    auto opened = SensorLog::open(run(), options_, 0, SensorLog::Clock::now(), files);
    if (!opened.ok()) continue;
    const auto log = std::move(opened).value();
    if (log->lost() == 0) continue;
    EXPECT_TRUE(log->has_news());
    EXPECT_THAT(
        log->take_news().warnings,
        ElementsAre(AllOf(HasSubstr("sensors.csv: No space left"), HasSubstr("samples are lost"))));
    EXPECT_THAT(log->take_news().warnings, IsEmpty());
    return;
  }
  FAIL() << "no write of a sample failed";
}

TEST_F(SensorLogTest, ALineThatWasCutOffIsNoneOfTheNextOnes) {
  fullbore::testing::FaultyFiles files;
  files.fail_at(
      3, ENOSPC);  // opened, looked at, header written, and then the first sample: half of it
  { const auto log = open(0, files); }
  const SensorTable table = read_sensor_file(run() + "/sensors.csv").take_or_throw();
  EXPECT_EQ(table.rows.size(), 1);
  EXPECT_EQ(table.damaged, 1);
}

TEST_F(SensorLogTest, AlarmsAreHandedToTheRun) {
  temperature("97000");
  const auto log = open(42);
  ASSERT_TRUE(log->has_news());
  const SensorLog::News news = log->take_news();
  ASSERT_EQ(news.alarms.size(), 1);
  EXPECT_EQ(news.alarms[0].cause, "cpu temperature");
  EXPECT_EQ(news.alarms[0].step, 42);
  EXPECT_FALSE(log->has_news());
}

TEST_F(SensorLogTest, ALinkIsNotFollowed) {
  std::filesystem::create_symlink(root_ / "elsewhere", run() + "/sensors.csv");
  EXPECT_THAT(SensorLog::open(run(), options_, 0, SensorLog::Clock::now()).error(),
              HasSubstr("symbolic link"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "elsewhere"));
}

TEST_F(SensorLogTest, TheSummaryIsOfAllSamples) {
  const fullbore::testing::ScratchFolder& folder = root_;
  folder.put(
      "sensors.csv",
      "step,seconds,time,process.utilization [%],cpu.clock [MHz],cpu.throttle,cpu.temperature "
      "[C],cpu.power.draw [W],cpu.energy [J],memory.power.draw [W],memory.energy [J]\n"
      "0,1,100,,3000,0,60,,0,,0\n"
      "10,2,101,80,2000,0,70,90,90,10,10\n"
      "20,3,102,60,2500,2,65,70,160,10,20\n"
      "torn\n"
      "15,1,900,70,2500,0,64,,0,,0\n"  // resumed: energy begins anew
      "25,2,901,70,2500,0,64,60,60,,\n");
  const SensorSummary all = summarize_sensors(folder.path()).take_or_throw();
  EXPECT_EQ(all.samples, 5);
  EXPECT_EQ(all.steps, 30);
  EXPECT_NEAR(all.utilisation, 0.70, 1e-12);
  EXPECT_TRUE(std::isnan(all.device_utilisation));
  EXPECT_NEAR(all.watts, (100 + 80 + 60) / 3.0, 1e-9);
  EXPECT_NEAR(all.joules, 160 + 20 + 60, 1e-9);
  EXPECT_NEAR(all.joules_per_step, 240 / 30.0, 1e-9);
  EXPECT_EQ(all.highest_celsius, 70);
  EXPECT_EQ(all.clock_mhz, 2500);
  EXPECT_EQ(all.throttled, 1);
  EXPECT_EQ(summarize_sensors(folder.path(), 20).take_or_throw().samples, 2);
  folder.put("sensors.csv",
             "step,seconds,time,gpu0.utilization.gpu [%],gpu1.utilization.gpu [%],gpu0.throttled,"
             "process.utilization [%],gpu0.memory.used [MiB],gpu1.memory.used [MiB]\n"
             "0,1,1,90,70,0,5,100,200\n");
  const SensorSummary devices = summarize_sensors(folder.path()).take_or_throw();
  EXPECT_EQ(devices.utilisation, 0.8);
  EXPECT_EQ(devices.throttled, 0);
  EXPECT_EQ(devices.device_mib, 300);
  EXPECT_TRUE(std::isnan(devices.joules_per_step));
  folder.put("sensors.csv", "time,load\n1,2\n");
  EXPECT_THAT(summarize_sensors(folder.path()).error(),
              AllOf(HasSubstr("sensors.csv: its first line"), HasSubstr("step,seconds,time")));
  EXPECT_EQ(summarize_sensors(run()).take_or_throw().samples, 0);
}

}  // namespace
}  // namespace fullbore
