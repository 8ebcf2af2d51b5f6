#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/threads.h"
#include "fullbore/monitor/sensor_sources.h"
#include "fullbore/monitor/sensor_text.h"

namespace fullbore {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Columns for each processor, where there are no more.
constexpr size_t kMostProcessors = 64;

/// The share of the time between two samples in which a processor was busy, in percent.
double busy_percent(const ProcessorTicks& before, const ProcessorTicks& now) {
  const int64_t total = now.total - before.total;
  const int64_t busy = now.busy - before.busy;
  if (total <= 0 || busy < 0) return kUnknown;
  return std::min(100.0, 100 * static_cast<double>(busy) / static_cast<double>(total));
}

/// Load of the processors, by this process and by others.
class ProcessorSensors : public SensorSource {
 public:
  explicit ProcessorSensors(const SensorOptions& options)
      : stat_(options.root + "/proc/stat"),
        self_(options.root + "/proc/self/stat"),
        usable_(available_processors(options.root)) {
    std::string missing;
    const auto times = parse_system_file(stat_, parse_processor_times, missing);
    if (times && times->each.size() <= kMostProcessors)
      for (const ProcessorTimes::Each& each : times->each) numbers_.push_back(each.number);
  }

  void read(double seconds, std::vector<SensorReading>& readings) override {
    std::string missing;
    std::string self_missing;
    auto times = parse_system_file(stat_, parse_processor_times, missing);
    const auto process = parse_system_file(self_, parse_process_times, self_missing);
    const double all = times && last_ ? busy_percent(last_->all, times->all) : kUnknown;
    readings.push_back({"cpu.utilization", "%", all, missing});
    for (const int64_t number : numbers_)
      readings.push_back(
          {fmt::format("cpu{}.utilization", number), "%", of(number, times), missing});
    readings.push_back(
        {"cpu.online", "", times ? static_cast<double>(times->each.size()) : kUnknown, missing});
    readings.push_back(
        {"cpu.runnable", "", times ? static_cast<double>(times->runnable) : kUnknown, missing});
    const double used = processors_used(process, seconds);
    readings.push_back({"process.utilization", "%", used * 100 / usable_, self_missing});
    readings.push_back({"process.threads", "",
                        process ? static_cast<double>(process->threads) : kUnknown, self_missing});
    const auto processors = times ? static_cast<double>(times->each.size()) : 0;
    const double others = processors > 0 ? all - used * 100 / processors : kUnknown;
    readings.push_back({"other.utilization", "%",
                        std::isnan(others) ? others : std::max(0.0, others),
                        missing.empty() ? self_missing : missing});
    last_ = std::move(times);
    last_process_ = process;
    last_seconds_ = seconds;
  }

 private:
  double of(int64_t number, const std::optional<ProcessorTimes>& times) const {
    if (!times || !last_) return kUnknown;
    // A processor may be taken offline, and another come before it.
    const auto now = std::ranges::find(times->each, number, &ProcessorTimes::Each::number);
    const auto before = std::ranges::find(last_->each, number, &ProcessorTimes::Each::number);
    if (now == times->each.end() || before == last_->each.end()) return kUnknown;
    return busy_percent(before->ticks, now->ticks);
  }

  /// On average since the last sample.
  double processors_used(const std::optional<ProcessTimes>& process, double seconds) const {
    if (!process || !last_process_ || seconds <= last_seconds_) return kUnknown;
    const int64_t ticks = process->ticks - last_process_->ticks;
    if (ticks < 0) return kUnknown;
    return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)) /
           (seconds - last_seconds_);
  }

  std::string stat_;
  std::string self_;
  int usable_;
  std::vector<int64_t> numbers_;
  std::optional<ProcessorTimes> last_;
  std::optional<ProcessTimes> last_process_;
  double last_seconds_ = 0;
};

/// Frequency, and how often it was lowered for heat.
class ClockSensors : public SensorSource {
 public:
  explicit ClockSensors(const SensorOptions& options)
      : folder_(options.root + "/sys/devices/system/cpu"), names_(numbered_names(folder_, "cpu")) {
    // Each frequency that is read may interrupt its processor; a few of many tell as much.
    constexpr size_t kMostClocks = 16;
    const size_t stride = (names_.size() + kMostClocks - 1) / kMostClocks;
    for (size_t i = 0; i < names_.size(); i += stride) sampled_.push_back(names_[i]);
  }

  void read(double, std::vector<SensorReading>& readings) override {
    readings.push_back(clock());
    readings.push_back(throttling());
  }

 private:
  SensorReading clock() const {
    SensorReading reading{"cpu.clock", "MHz"};
    double sum = 0;
    int count = 0;
    for (const std::string& name : sampled_) {
      const std::string path = fmt::format("{}/{}/cpufreq/scaling_cur_freq", folder_, name);
      const auto khz = parse_system_file(path, parse_count, reading.missing);
      if (!khz) continue;
      sum += static_cast<double>(*khz) / 1000;
      ++count;
    }
    if (count > 0) {
      reading.value = sum / count;
      reading.missing.clear();
    } else if (reading.missing.empty() || reading.missing.find("No such") != std::string::npos) {
      reading.missing = fmt::format(
          "{}/cpu*/cpufreq is not there: the kernel has no driver of "
          "frequencies for this processor, as in most virtual machines",
          folder_);
    }
    return reading;
  }

  /// Events of all cores and packages since the first sample.
  SensorReading throttling() {
    SensorReading reading{"cpu.throttle", ""};
    int64_t sum = 0;
    bool any = false;
    for (const std::string& name : names_)
      for (const char* const file : {"core_throttle_count", "package_throttle_count"}) {
        const std::string path = fmt::format("{}/{}/thermal_throttle/{}", folder_, name, file);
        std::string missing;
        const auto events = parse_system_file(path, parse_count, missing);
        if (!events) continue;
        // Any core's counter reaches far below this.
        sum += std::min(*events, int64_t{1} << 40);
        any = true;
      }
    if (any) {
      counter_.add(sum, 0);
      reading.value = static_cast<double>(counter_.total());
    } else {
      reading.missing = fmt::format(
          "{}/cpu*/thermal_throttle is not there: Intel processors alone have "
          "it, and not in virtual machines",
          folder_);
    }
    return reading;
  }

  std::string folder_;
  std::vector<std::string> names_;
  std::vector<std::string> sampled_;
  WrappingCounter counter_;
};

}  // namespace

std::unique_ptr<SensorSource> processor_sensors(const SensorOptions& options) {
  return std::make_unique<ProcessorSensors>(options);
}
std::unique_ptr<SensorSource> clock_sensors(const SensorOptions& options) {
  return std::make_unique<ClockSensors>(options);
}

}  // namespace fullbore
