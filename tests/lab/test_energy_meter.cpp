// What is counted of the energy of an ablation's runs, by counters that a test gives: RAPL's files and a fake of NVML.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fullbore/lab/ablation/energy_meter.h"
#include "tests/fake_nvml/fake_nvml.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class EnergyMeterTest : public ::testing::Test {
 protected:
  EnergyMeterTest() : library_(::dlopen(FB_FAKE_NVML, RTLD_NOW)) {
    EXPECT_NE(library_, nullptr) << ::dlerror();
    cards() = {.devices = 2, .millijoules = 1'000'000};
  }
  ~EnergyMeterTest() override {
    cards() = {};
    ::dlclose(library_);
  }
  FakeNvml& cards() const {
    return *reinterpret_cast<FakeNvml* (*)()>(::dlsym(library_, "fake_nvml"))();
  }
  void processors(const std::string& microjoules) const {
    const std::string zone = "sys/class/powercap/intel-rapl:0/";
    std::filesystem::create_directories(folder_ / zone);
    folder_.put(zone + "name", "package-0\n");
    folder_.put(zone + "energy_uj", microjoules);
    folder_.put(zone + "max_energy_range_uj", "1000000000\n");
  }
  SensorOptions options(const std::string& nvml) const {
    return {.root = folder_.path(), .nvml = nvml, .disk_folder = folder_.path()};
  }

  const testing::ScratchFolder folder_;
  void* library_;
};

TEST_F(EnergyMeterTest, ARunOnProcessorsCountsNoCard) {
  processors("5000000\n");
  EnergyMeter meter(false, options(FB_FAKE_NVML));
  EXPECT_EQ(meter.missing(), "");
  EXPECT_EQ(meter.counted(), "processors and memory");
  processors("8000000\n");
  cards().millijoules += 40'000;
  EXPECT_NEAR(meter.joules(), 3, 1e-9);
}

TEST_F(EnergyMeterTest, ARunOnACardCountsTheCardsToo) {
  processors("5000000\n");
  EnergyMeter meter(true, options(FB_FAKE_NVML));
  EXPECT_EQ(meter.missing(), "");
  EXPECT_EQ(meter.counted(), "processors and memory and cards");
  processors("8000000\n");
  cards().millijoules += 40'000;  // each of the two
  EXPECT_NEAR(meter.joules(), 83, 1e-9);
}

TEST_F(EnergyMeterTest, ACardIsCountedWhereNobodyMayReadTheProcessors) {
  EnergyMeter meter(true, options(FB_FAKE_NVML));
  EXPECT_EQ(meter.missing(), "");
  EXPECT_EQ(meter.counted(), "cards alone");
  cards().millijoules += 7'000;
  EXPECT_NEAR(meter.joules(), 14, 1e-9);
  cards().lost = 15;
  EXPECT_TRUE(std::isnan(meter.joules()));
  EXPECT_EQ(meter.missing(), "GPU is lost");
}

TEST_F(EnergyMeterTest, WithoutACounterTheReasonIsTold) {
  EXPECT_THAT(EnergyMeter(false, options("none.so")).missing(), HasSubstr("powercap"));
  processors("5000000\n");
  EnergyMeter card(true, options("none.so"));
  EXPECT_THAT(card.missing(), HasSubstr("no driver of NVIDIA devices"));
  EXPECT_TRUE(std::isnan(card.joules())) << "the processors' alone would say too little";
}

}  // namespace
}  // namespace fullbore
