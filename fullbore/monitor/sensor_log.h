#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"
#include "fullbore/monitor/alarms.h"
#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// Samples the sensors on a thread of its own while a run goes on: into sensors.csv of the run, a line each, with the
/// step that was made last. Its columns are those of the sensors that could be read when it was begun (sensor_file.h). A run
/// that is resumed goes on in the same file, or in sensors-2.csv, ... where this machine has other sensors.
///
/// It never holds up a step. A line that cannot be written is lost, which is said once.
class SensorLog {
 public:
  using Clock = std::chrono::steady_clock;

  using Observer = std::function<void(const std::vector<SensorReading>&)>;

  /// `start`: when the command was given. Takes the first sample. `observer` sees each, on the thread that samples. Failure: the file cannot be made, or the system
  /// refuses a thread.
  static Result<std::unique_ptr<SensorLog>> open(const std::string& run_folder,
                                                 const SensorLogOptions& options, int64_t step,
                                                 Clock::time_point start,
                                                 FileSystem& files = system_files(),
                                                 Observer observer = {});
  ~SensorLog();  ///< takes the last sample
  SensorLog(const SensorLog&) = delete;
  SensorLog& operator=(const SensorLog&) = delete;

  /// From any thread, as often as one likes.
  void at_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }

  struct News {
    std::vector<Alarm> alarms;          ///< since the last call
    std::vector<std::string> warnings;  ///< sentences
  };
  News take_news();
  const std::string& path() const { return path_; }
  int64_t lost() const {
    return lost_.load(std::memory_order_relaxed);
  }  ///< samples that could not be written

 private:
  SensorLog(const SensorLogOptions& options, int64_t step, Clock::time_point start,
            FileSystem& files, Observer observer);
  Status open_file(const std::string& run_folder);
  bool continues(const std::string& path, const std::string& header);
  void sample();
  void write(const std::string& line);
  void work();

  const SensorLogOptions options_;
  const Clock::time_point start_;
  FileSystem& files_;
  const Observer observer_;
  Sensors sensors_;
  AlarmWatch alarms_;
  std::vector<bool> columns_;  ///< of the readings: those that the file has
  std::string path_;
  int file_ = -1;
  bool torn_ = false;  ///< the last line in the file may have no end
  std::atomic<int64_t> step_;
  std::atomic<int64_t> lost_{0};
  std::atomic<bool> has_news_{false};
  std::mutex mutex_;  ///< guards news_ and stopping_
  std::condition_variable stop_;
  News news_;
  bool stopping_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace fullbore
