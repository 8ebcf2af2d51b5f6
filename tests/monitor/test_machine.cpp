#include "fullbore/monitor/machine.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/processor_facts.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/cpu/peaks/peak_kernels.h"
#include "fullbore/monitor/process.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

class MachineCache : public ::testing::Test {
 protected:
  MachineCache() : folder_(::testing::TempDir() + "fullbore_machine_cache") {
    std::filesystem::remove_all(folder_);
    setenv("FULLBORE_CACHE", folder_.c_str(), 1);
  }
  ~MachineCache() override {
    std::filesystem::remove_all(folder_);
    unsetenv("FULLBORE_CACHE");
  }
  std::string only_file() const {
    return std::filesystem::directory_iterator(folder_)->path().string();
  }
  /// Replaces a number in a JSON file.
  static void put(const std::string& path, const std::string& key, const std::string& value) {
    std::string text = read_file(path).value();
    const size_t number = text.find(": ", text.find('"' + key + '"')) + 2;
    text.replace(number, text.find(',', number) - number, value);
    ASSERT_TRUE(write_file_atomically(path, text).ok());
  }
  std::string folder_;
};

TEST_F(MachineCache, MeasuresWhatAMachineCanDo) {
  const std::shared_ptr<Device> device = cpu_device(2);
  const Machine machine = measure_machine(*device);
  EXPECT_GT(machine.peaks.fp32_flops, 1e8);
  EXPECT_GT(machine.peaks.bytes_per_second, 1e7);
  EXPECT_GE(machine.peaks.bf16_flops, machine.native_bf16 ? 1e8 : machine.peaks.fp32_flops);
  EXPECT_EQ(machine.processor, processor_name());
  EXPECT_EQ(machine.workers, 2);
}

// Whether a measurement is kept depends on what else the machine does: a file of our own does not.
TEST_F(MachineCache, WhatIsKeptIsNotMeasuredAgain) {
  const std::shared_ptr<Device> device = cpu_device(1);
  refresh_machine(*device);  // with nothing kept yet, kept whatever the circumstances
  put(only_file(), "fp32_flops", "9e18");
  const Machine known = known_machine(*device);
  EXPECT_EQ(known.peaks.fp32_flops, 9e18);
  EXPECT_EQ(known.processor, processor_name());
  EXPECT_FALSE(known.fp32_method.empty());
  EXPECT_LT(measure_machine(*device, {.bytes = 3 << 20}).peaks.fp32_flops, 9e18) << "not measured";
}

// The peak of tf32 came later: what was kept before is measured once more, or a card would have that of fp32 for it.
TEST_F(MachineCache, OfEarlierVersionsIsMeasuredAgain) {
  const std::string text =
      R"({"processor": "p", "workers": 2, "fp32_flops": 1, "bf16_flops": 3, "tf32_flops": 2,
          "bytes_per_second": 1, "fp32_method": "fma", "bf16_method": "mma.sync",
          "tf32_method": "mma.sync", "native_bf16": true})";
  const std::optional<Machine> machine = parse_machine(text);
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(machine->peaks.tf32_flops, 2);
  EXPECT_EQ(machine->tf32_method, "mma.sync");
  for (const std::string field : {R"("tf32_flops": 2,)", R"("tf32_method": "mma.sync",)"}) {
    std::string earlier = text;
    earlier.erase(earlier.find(field), field.size());
    EXPECT_FALSE(parse_machine(earlier).has_value()) << field;
  }
  Machine higher = *machine;
  higher.peaks.tf32_flops = 5;
  EXPECT_EQ(higher_peaks(*machine, higher).peaks.tf32_flops, 5);
}

TEST_F(MachineCache, OfABusyMachineIsKeptForAnHour) {
  const std::shared_ptr<Device> device = cpu_device(1);
  refresh_machine(*device);
  const std::string path = only_file();
  put(path, "busy", "true");
  put(path, "fp32_flops", "17");
  EXPECT_EQ(known_machine(*device).peaks.fp32_flops, 17);
  EXPECT_TRUE(known_machine(*device).busy);
  namespace fs = std::filesystem;
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(61));
  EXPECT_GT(known_machine(*device).peaks.fp32_flops, 1e8);
  EXPECT_GT(known_machine(*device).peaks.fp32_flops, 1e8) << "not kept";
}

// What has been reached once can be reached: load lowers measurements, and nothing raises them.
TEST_F(MachineCache, KeepsTheHighestPeaksEverSeen) {
  const std::shared_ptr<Device> device = cpu_device(1);
  refresh_machine(*device);
  const std::string path = only_file();
  put(path, "fp32_flops", "17");
  put(path, "bytes_per_second", "9e18");
  const Machine machine = refresh_machine(*device);
  EXPECT_GT(machine.peaks.fp32_flops, 1e8);
  EXPECT_EQ(machine.peaks.bytes_per_second, 9e18);
  const Machine kept = known_machine(*device);
  EXPECT_EQ(kept.peaks.fp32_flops, machine.peaks.fp32_flops);
  EXPECT_EQ(kept.peaks.bytes_per_second, 9e18);
}

// Arrays that fit into caches tell nothing of memory.
TEST_F(MachineCache, ABandwidthOfCachesIsNotKept) {
  const std::shared_ptr<Device> device = cpu_device(1);
  const Machine machine = known_machine(*device, {.bytes = 6 << 20});
  EXPECT_TRUE(machine.in_caches);
  EXPECT_GT(machine.peaks.bytes_per_second, 1e7);
  EXPECT_FALSE(std::filesystem::exists(folder_) && !std::filesystem::is_empty(folder_));
  Machine memory = machine;
  memory.in_caches = false;
  memory.peaks = {1, 2, 3};
  EXPECT_EQ(higher_peaks(memory, machine).peaks.bytes_per_second, 3);
  EXPECT_EQ(higher_peaks(machine, memory).peaks.bytes_per_second, 3);
  EXPECT_FALSE(higher_peaks(machine, memory).in_caches);
}

// What is lent is taken where it does as well as what may be had from the system.
TEST_F(MachineCache, MeasuresInMemoryThatIsLent) {
  const std::shared_ptr<Device> device = cpu_device(2);
  static constexpr int64_t kLent = 6 << 20;
  const auto memory = device->allocate(kLent);
  const auto lent = [&](int64_t allowed, int64_t bytes = int64_t{6} << 20) {
    return measure_machine(*device,
                           {.bytes = allowed, .lent = memory->address(), .lent_bytes = bytes});
  };
  const auto untouched = [&] {
    std::vector<char> contents(kLent);
    device->read(memory->address(), std::as_writable_bytes(std::span(contents)));
    return is_zero(contents.data(), kLent);
  };
  EXPECT_GT(lent(12 << 20).peaks.bytes_per_second, 1e7);
  EXPECT_TRUE(untouched());
  EXPECT_GT(lent(3 << 20).peaks.bytes_per_second, 1e7);
  EXPECT_FALSE(untouched());
  EXPECT_GT(lent(0, 100).peaks.bytes_per_second, 1e7)
      << "too little for anything: the least is taken";
}

// A step of 2 ms at 1 GFLOP: a peak of 400 GFLOP/s says 2.5 ms, and is wrong.
TEST(SettledPeaks, AreMeasuredAgainWhileAStepExceedsThem) {
  const auto share = [](const MachinePeaks& peaks) { return 1e9 / peaks.fp32_flops / 2e-3; };
  const auto machine_of = [](double flops) {
    Machine machine;
    machine.peaks.fp32_flops = flops;
    return machine;
  };
  std::vector<double> measured = {300e9, 450e9, 600e9, 700e9};
  size_t next = 0;
  const auto measure = [&] { return machine_of(measured[next++]); };
  EXPECT_EQ(settle_peaks(machine_of(400e9), share, measure).peaks.fp32_flops, 600e9);
  EXPECT_EQ(next, 3U);
  next = 0;
  EXPECT_EQ(settle_peaks(machine_of(800e9), share, measure).peaks.fp32_flops, 800e9);
  EXPECT_EQ(next, 0U) << "nothing exceeds it";
  measured = {300e9, 200e9, 410e9, 700e9};
  EXPECT_EQ(settle_peaks(machine_of(400e9), share, measure).peaks.fp32_flops, 410e9);
  EXPECT_EQ(next, 3U) << "and no further";
}

TEST_F(MachineCache, BrokenCacheIsMeasuredAgain) {
  const std::shared_ptr<Device> device = cpu_device(1);
  refresh_machine(*device);
  const std::string path = only_file();
  for (const char* text : {"", "{", "[1]", R"({"processor": 3})"}) {
    ASSERT_TRUE(write_file_atomically(path, text).ok());
    const Machine machine = known_machine(*device);
    EXPECT_GT(machine.peaks.fp32_flops, 1e8) << text;
    EXPECT_LT(machine.peaks.fp32_flops, 1e18) << text;
  }
  refresh_machine(*device);
  put(path, "workers", "7");  // another machine's
  EXPECT_EQ(known_machine(*device).workers, 1);
}

// x = x / 2 + 1/2 halves the distance to 1 in every lane of every chain, and reaches it in 25 steps.
// Chains differ at the start: a compiler that makes one of them, as of equal ones, is found out.
TEST(PeakKernels, DoTheArithmeticTheyAreCountedFor) {
  const cpu::PeakKernel kernel = cpu::fp32_peak_kernel();
  EXPECT_GT(kernel.flops_per_iteration, 0);
  constexpr float kDistance = 12 - 66.0F / 16;
  EXPECT_EQ(kernel.run(0), 12 - kDistance);
  EXPECT_EQ(kernel.run(1), 12 - kDistance / 2);
  EXPECT_EQ(kernel.run(2), 12 - kDistance / 4);
  EXPECT_EQ(kernel.run(100), 12.0F);
  const cpu::PeakKernel bf16 = cpu::bf16_peak_kernel();
  if (bf16.run == nullptr) {
    EXPECT_EQ(bf16.flops_per_iteration, 0);
  } else {
    bf16.run(100);  // must not trap
  }
}

const auto kLoaded = std::chrono::steady_clock::now();

TEST(Process, BeganBeforeItWasLoaded) {
  EXPECT_LE(process_start(), kLoaded);
  EXPECT_GT(process_start(), kLoaded - std::chrono::minutes(10));
}

TEST(Process, PeakCanBeForgotten) {
  // Not from the heap: a sanitizer's heap keeps what is freed.
  constexpr size_t kBytes = 256 << 20;
  void* block = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  const int64_t with_block = peak_resident_bytes();
  munmap(block, kBytes);
  EXPECT_GE(peak_resident_bytes(), with_block);
  forget_peak_resident_bytes();
  EXPECT_LT(peak_resident_bytes(), with_block - (200 << 20));
}

TEST(Process, SizesAreSane) {
  const int64_t before = resident_bytes();
  EXPECT_GT(before, 1 << 20);
  const std::string block(64 << 20, 'x');
  EXPECT_GT(resident_bytes(), before + (48 << 20)) << block.size();
  EXPECT_GE(peak_resident_bytes(), resident_bytes() - (4 << 20));
  EXPECT_GE(online_processors(), 1);
  EXPECT_GT(memory_limit_bytes(), 64 << 20);
  EXPECT_GT(free_disk_bytes("/tmp/not/yet/there"), 0);
  EXPECT_FALSE(processor_name().empty());
}

}  // namespace
}  // namespace fullbore
