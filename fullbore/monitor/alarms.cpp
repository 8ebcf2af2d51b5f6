#include "fullbore/monitor/alarms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

// How far below its limit a reading must fall before the alarm is over.
constexpr double kCooler = 5;
constexpr double kLessPower = 0.9;
constexpr double kLessSwap = 0.5;
constexpr double kLessGrowth = 0.5;
constexpr double kLongerToFull = 2;
constexpr double kRestSeconds = 60;  // without throttling
// Share of the time in which the control group may keep threads from running before that is an alarm.
constexpr double kMostGroupThrottling = 0.1;
// Free space is compared over minutes: checkpoints come in bursts, and old ones are removed.
constexpr double kDiskWindowSeconds = 600;
constexpr double kLeastDiskSeconds = 120;
constexpr double kDiskSpacingSeconds = 2;

bool is_gpu(std::string_view name, std::string_view figure) {
  return name.starts_with("gpu") && name.ends_with(figure);
}

}  // namespace

AlarmWatch::AlarmWatch(const AlarmLimits& limits) : limits_(limits) {}

double AlarmWatch::Sample::value(std::string_view name) const {
  const auto found = std::ranges::find(readings, name, &SensorReading::name);
  return found == readings.end() ? kUnknown : found->value;
}

std::vector<Alarm> AlarmWatch::look(int64_t step, double seconds,
                                    const std::vector<SensorReading>& readings) {
  const Sample sample{step, seconds, readings};
  if (std::isnan(first_seconds_)) first_seconds_ = seconds;
  look_at_heat(sample);
  look_at_power(sample);
  look_at_throttling(sample);
  look_at_threads(sample);
  look_at_swap(sample);
  look_at_disk(sample);
  look_at_growth(sample);
  last_seconds_ = seconds;
  return std::exchange(told_, {});
}

void AlarmWatch::judge(Cause& cause, const Sample& sample, bool over, bool under, double value,
                       double limit, const char* unit, const std::string& words) {
  if (cause.raised ? !under : !over) return;
  cause.raised = !cause.raised;
  told_.push_back({.cause = cause.name,
                   .raised = cause.raised,
                   .value = value,
                   .limit = limit,
                   .unit = unit,
                   .step = sample.step,
                   .seconds = sample.seconds,
                   .message = cause.raised ? words : fmt::format("{}: it is over", cause.name)});
}

double AlarmWatch::increase(std::string_view counter, const Sample& sample) {
  const double now = sample.value(counter);
  if (std::isnan(now)) return 0;
  const auto [place, is_new] = counters_.try_emplace(std::string(counter), now);
  return is_new ? 0 : now - std::exchange(place->second, now);
}

void AlarmWatch::look_at_heat(const Sample& sample) {
  const auto look = [&](Cause& cause, double celsius, double limit, const char* what,
                        const char* key) {
    if (limit <= 0 || std::isnan(celsius)) return;
    judge(cause, sample, celsius >= limit, celsius <= limit - kCooler, celsius, limit, "C",
          fmt::format("the {} is at {:.0f} C (alarms.{}={:.0f})", what, celsius, key, limit));
  };
  look(cpu_heat_, sample.value("cpu.temperature"), limits_.cpu_celsius, "processor", "cpu_celsius");
  double hottest = kUnknown;
  for (const SensorReading& each : sample.readings)
    if (is_gpu(each.name, ".temperature.gpu")) hottest = std::fmax(hottest, each.value);
  look(gpu_heat_, hottest, limits_.gpu_celsius, "device", "gpu_celsius");
}

void AlarmWatch::look_at_power(const Sample& sample) {
  double watts = 0;
  bool any = false;
  for (const SensorReading& each : sample.readings)
    if (each.name.ends_with(".power.draw") && !std::isnan(each.value)) {
      watts += each.value;
      any = true;
    }
  if (limits_.watts <= 0 || !any) return;
  judge(power_, sample, watts >= limits_.watts, watts <= limits_.watts * kLessPower, watts,
        limits_.watts, "W",
        fmt::format("{:.0f} W are drawn (alarms.watts={:.0f})", watts, limits_.watts));
}

void AlarmWatch::look_at_throttling(const Sample& sample) {
  if (!limits_.throttling) return;
  std::string who;
  const auto add = [&](const std::string& name) { who += (who.empty() ? "" : ", ") + name; };
  if (increase("cpu.throttle", sample) > 0) add("the processor is slowed down by heat");
  // Seconds in which each thread was kept from running add up: one second in ten is much for a single one.
  const double passed = sample.seconds - last_seconds_;
  if (increase("group.cpu.throttled", sample) > kMostGroupThrottling * passed)
    add("the control group's quota of processors is used up");
  for (const SensorReading& each : sample.readings)
    if (is_gpu(each.name, ".throttled") && each.value > 0)
      add(each.name.substr(0, each.name.find('.')) + " is slowed down by heat or a limit of power");
  if (!who.empty()) last_throttled_ = sample.seconds;
  judge(throttling_, sample, !who.empty(), sample.seconds - last_throttled_ >= kRestSeconds,
        who.empty() ? 0 : 1, 0, "", who + " (alarms.throttling)");
}

void AlarmWatch::look_at_threads(const Sample& sample) {
  // The thread that samples runs too.
  const double runnable = sample.value("cpu.runnable") - 1;
  const double processors = sample.value("cpu.online");
  const double window = limits_.oversubscribed_seconds;
  if (window <= 0 || std::isnan(runnable) || !(processors > 0)) return;
  const double passed = std::isnan(last_seconds_) ? 0 : sample.seconds - last_seconds_;
  const double keep = std::exp(-2 * passed / window);
  mean_runnable_ =
      std::isnan(last_seconds_) ? runnable : keep * mean_runnable_ + (1 - keep) * runnable;
  // A run that uses all processors has as many threads that could run, and now and then one more.
  judge(
      threads_, sample,
      sample.seconds - first_seconds_ >= window && mean_runnable_ > processors + 0.5,
      mean_runnable_ < processors + 0.1, mean_runnable_, processors, "",
      fmt::format(
          "{:.1f} threads could run on {:.0f} processors on average of the last {}: other programs "
          "are "
          "busy, or engine.threads and data.workers are too many "
          "(alarms.oversubscription_seconds={:.0f})",
          mean_runnable_, processors, duration_text(window), window));
}

void AlarmWatch::look_at_swap(const Sample& sample) {
  const double mib = sample.value("process.memory.swapped");
  if (limits_.swap_mib <= 0 || std::isnan(mib)) return;
  judge(swap_, sample, mib >= limits_.swap_mib, mib <= limits_.swap_mib * kLessSwap, mib,
        limits_.swap_mib, "MiB",
        fmt::format("{:.0f} MiB of the run are swapped out (alarms.swap_mib={:.0f}): "
                    "engine.memory_budget fits it "
                    "into less memory",
                    mib, limits_.swap_mib));
}

void AlarmWatch::look_at_disk(const Sample& sample) {
  const double mib = sample.value("disk.free");
  if (limits_.disk_hours <= 0 || std::isnan(mib)) return;
  if (!free_.empty() && sample.seconds - free_.back().seconds < kDiskSpacingSeconds) return;
  free_.push_back({sample.seconds, mib});
  std::erase_if(free_, [&](const FreeSpace& each) {
    return each.seconds < sample.seconds - kDiskWindowSeconds;
  });
  if (free_.back().seconds - free_.front().seconds < kLeastDiskSeconds) return;
  const size_t third = free_.size() / 3;
  if (third == 0) return;
  const auto sorted = [&](size_t begin) {
    std::vector<double> values;
    for (size_t i = begin; i < begin + third; ++i) values.push_back(free_[i].mib);
    std::ranges::sort(values);
    return values;
  };
  // From the first third to the last one: of the least, the median and the most free space in each, that which has
  // fallen least. What swings has not fallen.
  const size_t last = free_.size() - third;
  const std::vector<double> before = sorted(0);
  const std::vector<double> now = sorted(last);
  const double fallen = std::min({before.front() - now.front(), before[third / 2] - now[third / 2],
                                  before.back() - now.back()});
  const double seconds = free_[last + third / 2].seconds - free_[third / 2].seconds;
  const double hours = fallen > 0 ? mib / (fallen / seconds) / 3600 : INFINITY;
  judge(disk_, sample, hours<limits_.disk_hours, hours> limits_.disk_hours * kLongerToFull,
        std::min(hours, 1e6), limits_.disk_hours, "h",
        fmt::format("the disk of the run has {} left and is full in {} if it goes on like that "
                    "(alarms.disk_hours={})",
                    bytes_text(mib * 1048576), duration_text(hours * 3600), limits_.disk_hours));
}

void AlarmWatch::look_at_growth(const Sample& sample) {
  const double mib = sample.value("process.memory.resident");
  if (limits_.growth_mib <= 0 || std::isnan(mib)) return;
  growth_.add(sample.step, mib);
  const double growth = growth_.per_thousand_steps().value_or(0);
  judge(growth_cause_, sample, growth >= limits_.growth_mib,
        growth <= limits_.growth_mib * kLessGrowth, growth, limits_.growth_mib, "MiB",
        fmt::format("resident memory grows by {:.0f} MiB in 1,000 steps and is at {:.0f} MiB "
                    "(alarms.memory_growth_mib={:.0f})",
                    growth, mib, limits_.growth_mib));
}

}  // namespace fullbore
