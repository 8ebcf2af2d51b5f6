#include "fullbore/app/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace fullbore {
namespace {

using ::testing::HasSubstr;

/// Three rounds of one step of 768 tokens each.
BenchContender contender(const std::string& name, double seconds) {
  BenchContender result;
  result.name = name;
  result.times.step_seconds = result.times.round_seconds = {seconds, seconds, seconds};
  result.times.round_tokens = {768, 768, 768};
  result.times.round_samples = {12, 12, 12};
  result.times.steps_per_round = 1;
  result.times.tokens = 3 * 768;
  result.times.samples = 3 * 12;
  result.machine.workers = 1;
  result.machine.peaks.bytes_per_second = 1e10;
  return result;
}

std::string compared(double seconds, double other) {
  BenchReport report{.config = "job.yaml", .contenders = {}};
  report.contenders = {contender("as configured", seconds), contender("engine.threads=1", other)};
  return text(report);
}

TEST(BenchReport, RatiosHaveAsManyDigitsAsSayAnything) {
  EXPECT_THAT(
      compared(1.25, 1),
      HasSubstr("engine.threads=1: 1.250 times the throughput, 95 % confidence 1.250 to 1.250\n"));
  EXPECT_THAT(compared(1.25, 10), HasSubstr(": 0.125 times the throughput"));
  // A machine that stood still in one of the measurements.
  const std::string stalled = compared(1, 1 / 114.163);
  EXPECT_THAT(stalled, HasSubstr(": 114.2 times the throughput, 95 % confidence 114.2 to 114.2\n"));
  std::istringstream lines(stalled);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace fullbore
