#include "fullbore/monitor/card_settings.h"
#include "fullbore/monitor/sensor.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/fake_nvml/fake_nvml.h"
#include "tests/support/scratch_folder.h"

/// Sensors of trees of files as the kernel shows them, and of a library that stands in for NVIDIA's.
namespace fullbore {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;

class SensorsTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    const std::string full = folder_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(folder_.path() + path); }
  Sensors& sensors() {
    if (!sensors_) sensors_.emplace(options_);
    return *sensors_;
  }
  /// The reading of this name, of a new sample.
  SensorReading at(double seconds, const std::string& name) {
    for (const SensorReading& reading : sensors().read(seconds))
      if (reading.name == name) return reading;
    ADD_FAILURE() << "no sensor " << name;
    return {};
  }
  /// Of the last sample.
  void zone(const std::string& name, const std::string& called, const std::string& energy,
            const std::string& range = "1000000000\n") const {
    put("/sys/class/powercap/" + name + "/name", called);
    put("/sys/class/powercap/" + name + "/energy_uj", energy);
    put("/sys/class/powercap/" + name + "/max_energy_range_uj", range);
  }

  const fullbore::testing::ScratchFolder folder_;
  SensorOptions options_{
      .root = folder_.path(), .nvml = folder_ / "none.so", .disk_folder = folder_.path()};
  std::optional<Sensors> sensors_;
};

TEST_F(SensorsTest, EnergyCountersThatGoRoundGoOn) {
  zone("intel-rapl:0", "package-0\n", "999000000\n");
  zone("intel-rapl:0:0", "core\n", "7\n");
  zone("intel-rapl:0:1", "dram\n", "500\n");
  zone("intel-rapl:1", "package-1\n", "0\n");
  zone("intel-rapl:2", "psys\n", "0\n");
  EXPECT_TRUE(std::isnan(at(10, "cpu.power.draw").value));
  EXPECT_EQ(at(10, "cpu.power.draw").missing, "") << "it will be known";
  zone("intel-rapl:0", "package-0\n", "4000000\n");   // 1 J to the end, and 4
  zone("intel-rapl:1", "package-1\n", "15000000\n");  // 15 J
  zone("intel-rapl:2", "psys\n", "900000000\n");      // counts the others once more
  EXPECT_NEAR(at(12, "cpu.power.draw").value, 20 / 2.0, 1e-9);
  EXPECT_NEAR(at(12, "cpu.energy").value, 20, 1e-9);
  zone("intel-rapl:0:1", "dram\n", "2000500\n");
  EXPECT_NEAR(at(14, "memory.power.draw").value, 1, 1e-9);
}

TEST_F(SensorsTest, ACounterThatWasSetBackCountsNothing) {
  zone("intel-rapl:0", "package-0\n", "300000000\n");  // far from its end at 1000 J
  at(0, "cpu.energy");
  zone("intel-rapl:0", "package-0\n", "100\n");
  EXPECT_TRUE(std::isnan(at(1, "cpu.power.draw").value));
  EXPECT_EQ(at(1, "cpu.energy").value, 0);
  zone("intel-rapl:0", "package-0\n", "5000100\n");
  EXPECT_NEAR(at(3, "cpu.energy").value, 5, 1e-9);
}

TEST_F(SensorsTest, ASensorThatVanishesSaysSoAndComesBack) {
  zone("intel-rapl:0", "package-0\n", "1000000\n");
  at(0, "cpu.energy");
  remove("/sys/class/powercap/intel-rapl:0/energy_uj");
  EXPECT_THAT(at(1, "cpu.energy").missing,
              AllOf(HasSubstr("powercap/intel-rapl:0/energy_uj"), HasSubstr("No such file")));
  EXPECT_TRUE(std::isnan(at(1, "cpu.power.draw").value));
  zone("intel-rapl:0", "package-0\n", "31000000\n");
  EXPECT_NEAR(at(10, "cpu.power.draw").value, 3, 1e-9) << "over all of the time";
}

TEST_F(SensorsTest, GarbageIsNoReading) {
  for (const char* const garbage :
       {"", "-1\n", "0x10\n", "1e9\n", "99999999999999999999\n", "12 34\n", "nan\n"}) {
    zone("intel-rapl:0", "package-0\n", garbage);
    sensors_.reset();
    const SensorReading energy = at(0, "cpu.energy");
    EXPECT_TRUE(std::isnan(energy.value)) << garbage;
    EXPECT_THAT(energy.missing, HasSubstr("energy_uj holds something else")) << garbage;
  }
  put("/proc/stat", "cpu 1 2 3\nprocs_running 1\n");
  EXPECT_THAT(at(0, "cpu.utilization").missing, HasSubstr("/proc/stat holds something else"));
  put("/proc/stat", "cpu 9223372036854775807 9223372036854775807 0 0\nprocs_running 1\n");
  EXPECT_THAT(at(0, "cpu.utilization").missing, HasSubstr("/proc/stat holds something else"));
}

TEST_F(SensorsTest, TheHottestCoreCounts) {
  put("/sys/class/hwmon/hwmon0/name", "nvme\n");
  put("/sys/class/hwmon/hwmon0/temp1_input", "99000\n");
  put("/sys/class/hwmon/hwmon1/name", "coretemp\n");
  put("/sys/class/hwmon/hwmon1/temp1_input", "61000\n");
  put("/sys/class/hwmon/hwmon1/temp2_input", "64500\n");
  put("/sys/class/hwmon/hwmon1/temp3_input", "garbage\n");
  EXPECT_EQ(at(0, "cpu.temperature").value, 64.5);
  remove("/sys/class/hwmon");
  put("/sys/class/thermal/thermal_zone2/type", "x86_pkg_temp\n");
  put("/sys/class/thermal/thermal_zone2/temp", "-3000\n");
  EXPECT_THAT(at(1, "cpu.temperature").missing, HasSubstr("temp"));
  sensors_.reset();
  EXPECT_EQ(at(0, "cpu.temperature").value, -3);
}

TEST_F(SensorsTest, LoadIsOfTheTimeSinceTheLastSample) {
  put("/proc/stat",
      "cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 50 0 0 50 0\ncpu3 50 0 0 50 0\nprocs_running 3\n");
  put("/proc/self/stat", "7 (a) b) R 1 1 1 0 -1 4194304 1 0 0 0 20 10 0 0 20 0 5 0 1 1 1\n");
  at(1, "cpu.utilization");
  put("/proc/stat", "cpu  250 0 0 150 0 0 0 0 0 0\ncpu0 150 0 0 50 0\nprocs_running 4\n");
  put("/proc/self/stat", "7 (a) b) R 1 1 1 0 -1 4194304 1 0 0 0 90 40 0 0 20 0 6 0 1 1 1\n");
  std::map<std::string, SensorReading> now;
  for (const SensorReading& reading : sensors().read(2)) now[reading.name] = reading;
  EXPECT_EQ(now["cpu.utilization"].value, 75);
  EXPECT_EQ(now["cpu0.utilization"].value, 100);
  EXPECT_THAT(now["cpu3.utilization"].value, IsNan()) << "it was taken away";
  EXPECT_EQ(now["cpu.runnable"].value, 4);
  EXPECT_EQ(now["process.threads"].value, 6);
}

TEST_F(SensorsTest, MemoryPressureAndDisk) {
  put("/proc/meminfo",
      "MemTotal: 2048 kB\nMemAvailable:  1024 kB\nSwapTotal: 512 kB\nSwapFree: 256 kB\n");
  put("/proc/self/status", "Name:\tx\nVmRSS:\t   3072 kB\nVmSwap:\t 1024 kB\n");
  put("/proc/pressure/memory",
      "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=3.00 total=0\n");
  put("/proc/pressure/io", "some avg10=1e300 avg60=0 avg300=0 total=1\n");
  std::map<std::string, SensorReading> now;
  for (const SensorReading& reading : sensors().read(0)) now[reading.name] = reading;
  EXPECT_EQ(now["memory.available"].value, 1);
  EXPECT_EQ(now["swap.used"].value, 0.25);
  EXPECT_EQ(now["process.memory.resident"].value, 3);
  EXPECT_EQ(now["process.memory.swapped"].value, 1);
  EXPECT_EQ(now["pressure.memory"].value, 12.5);
  EXPECT_THAT(now["pressure.io"].missing, HasSubstr("something else"));
  EXPECT_THAT(now["pressure.cpu"].missing, HasSubstr("No such file"));
  EXPECT_GT(now["disk.free"].value, 0);
  EXPECT_EQ(now["disk.free"].title(), "disk.free [MiB]");
}

TEST_F(SensorsTest, TheControlGroupsUseAndThrottling) {
  put("/proc/self/cgroup", "0::/job\n");
  put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const std::string group = "/sys/fs/cgroup/job";
  put(group + "/memory.max", "4194304\n");
  put(group + "/memory.current", "1048576\n");
  put(group + "/cpu.max", "150000 100000\n");
  put(group + "/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1000000\n");
  put(group + "/memory.pressure", "some avg10=7.00 avg60=0.00 avg300=0.00 total=9\n");
  EXPECT_EQ(at(0, "group.cpu.throttled").value, 0) << "it is of the time from now on";
  put(group + "/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 3500000\n");
  EXPECT_EQ(at(1, "group.cpu.throttled").value, 2.5);
  EXPECT_EQ(at(2, "group.memory.limit").value, 4);
  EXPECT_EQ(at(2, "group.memory.used").value, 1);
  EXPECT_EQ(at(2, "group.cpu.limit").value, 1.5);
  EXPECT_EQ(at(2, "group.pressure.memory").value, 7);
}

TEST_F(SensorsTest, ClocksAndThrottlingOfCores) {
  for (const char* const cpu : {"cpu0", "cpu1"}) {
    const std::string folder = std::string("/sys/devices/system/cpu/") + cpu;
    put(folder + "/cpufreq/scaling_cur_freq", cpu[3] == '0' ? "2000000\n" : "3000000\n");
    put(folder + "/thermal_throttle/core_throttle_count", "5\n");
  }
  EXPECT_EQ(at(0, "cpu.clock").value, 2500);
  EXPECT_EQ(at(0, "cpu.throttle").value, 0);
  put("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "8\n");
  EXPECT_EQ(at(1, "cpu.throttle").value, 3);
}

TEST_F(SensorsTest, WithoutHardwareTheReasonIsTold) {
  std::set<std::string> names;
  for (const SensorReading& reading : sensors().read(0)) {
    EXPECT_TRUE(names.insert(reading.name).second) << reading.name << " is there twice";
    if (reading.name == "disk.free" || reading.missing.empty()) continue;
    EXPECT_TRUE(std::isnan(reading.value)) << reading.name;
    EXPECT_GT(reading.missing.size(), 20) << reading.name;
  }
  EXPECT_THAT(at(0, "cpu.energy").missing, HasSubstr("intel_rapl"));
  EXPECT_THAT(at(0, "gpu").missing, HasSubstr("no driver of NVIDIA devices"));
}

TEST_F(SensorsTest, NvidiasDevicesAreReadThroughTheirLibrary) {
  options_.nvml = FB_FAKE_NVML;
  void* const library = ::dlopen(FB_FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  FakeNvml& nvml = *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml"))();
  nvml = {.devices = 2,
          .load = 93,
          .used_bytes = 3ULL << 30,
          .celsius = 71,
          .milliwatts = 250500,
          .millijoules = 1'000'000,
          .reasons = 0x4,
          .processes = 3};
  at(0, "gpu0.energy");
  nvml.millijoules += 12'500;
  std::map<std::string, SensorReading> now;
  for (const SensorReading& reading : sensors().read(1)) now[reading.name] = reading;
  EXPECT_EQ(now["gpu1.utilization.gpu"].value, 93);
  EXPECT_EQ(now["gpu0.memory.used"].value, 3072);
  EXPECT_EQ(now["gpu0.memory.total"].value, 16384);
  EXPECT_EQ(now["gpu0.temperature.gpu"].title(), "gpu0.temperature.gpu [C]");
  EXPECT_EQ(now["gpu0.temperature.gpu"].value, 71);
  EXPECT_EQ(now["gpu0.power.draw"].value, 250.5);
  EXPECT_EQ(now["gpu0.energy"].value, 12.5);
  EXPECT_EQ(now["gpu0.throttled"].value, 1);
  EXPECT_EQ(now["gpu0.processes"].value, 3);
  EXPECT_EQ(now["gpu0.clocks.sm"].missing, "Not Supported");
  nvml.reasons = 0x1;  // idle
  EXPECT_EQ(at(2, "gpu0.throttled").value, 0);
  nvml.clock_mhz = 1410;
  EXPECT_EQ(at(2, "gpu0.clocks.sm").value, 1410);
  nvml.lost = 15;
  EXPECT_EQ(at(3, "gpu0.power.draw").missing, "GPU is lost");
  nvml.lost = 0;
  sensors_.reset();
  EXPECT_EQ(nvml.shut_downs, 1);
  nvml.initialize = 4;
  EXPECT_THAT(at(0, "gpu").missing, HasSubstr("refuses: Insufficient Permissions"));
  nvml = {.devices = 0};
  sensors_.reset();
  EXPECT_EQ(at(0, "gpu").missing, "NVIDIA's driver knows no device");
  sensors_.reset();
  ::dlclose(library);
}

TEST_F(SensorsTest, SettingsOfNvidiasDevicesAreToldWithTheCommandsThatChangeThem) {
  options_.nvml = FB_FAKE_NVML;
  void* const library = ::dlopen(FB_FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  FakeNvml& nvml = *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml"))();
  nvml = {.devices = 2};
  const auto settings = [&](size_t index) {
    return read_card_settings(options_).take_or_throw().at(index);
  };
  // A card that tells nothing but that nothing holds it down.
  EXPECT_EQ(settings(0).name, "Fake card");
  EXPECT_THAT(settings(0).texts(), ElementsAre("clocks held down by nothing"));
  EXPECT_THAT(settings(0).commands(), IsEmpty());
  nvml.reasons = 0x24;
  nvml.clock_mhz = 1410;
  nvml.most_clock_mhz = 1980;
  nvml.memory_mhz = 3201;
  nvml.persistence = 0;
  nvml.limit_milliwatts = 600'000;
  nvml.most_milliwatts = 700'000;
  EXPECT_THAT(settings(1).texts(), ElementsAre("clocks 1410 of 1980 MHz", "memory clocks 3201 MHz",
                                               "clocks held down by power limit, heat (driver)",
                                               "persistence mode off", "power limit 600 of 700 W"));
  EXPECT_THAT(settings(1).commands(), ElementsAre(HasSubstr("sudo nvidia-smi -i 1 -pm 1: "),
                                                  HasSubstr("sudo nvidia-smi -i 1 -lgc 1980: "),
                                                  HasSubstr("sudo nvidia-smi -i 1 -pl 700: ")));
  nvml.persistence = 1;
  nvml.limit_milliwatts = 700'000;
  EXPECT_THAT(settings(0).commands(), ElementsAre(HasSubstr("-lgc 1980")));
  nvml.lost = 15;
  EXPECT_THAT(settings(0).texts(), IsEmpty());
  nvml.initialize = 4;
  EXPECT_THAT(read_card_settings(options_).error(), HasSubstr("Insufficient Permissions"));
  nvml = {};
  ::dlclose(library);
}

}  // namespace
}  // namespace fullbore
