#include "fullbore/monitor/sensor_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/file_lines.h"
#include "fullbore/base/files.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/monitor/sensor_file.h"

namespace fullbore {
namespace {

constexpr int kMostFiles = 1000;

double seconds_between(SensorLog::Clock::time_point from, SensorLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

SensorLog::SensorLog(const SensorLogOptions& options, int64_t step, Clock::time_point start,
                     FileSystem& files, Observer observer)
    : options_(options),
      start_(start),
      files_(files),
      observer_(std::move(observer)),
      sensors_(options.sensors),
      alarms_(options.alarms),
      step_(step) {}

Result<std::unique_ptr<SensorLog>> SensorLog::open(const std::string& run_folder,
                                                   const SensorLogOptions& options, int64_t step,
                                                   Clock::time_point start, FileSystem& files,
                                                   Observer observer) {
  SensorLogOptions with_disk = options;
  with_disk.sensors.disk_folder = run_folder;
  std::unique_ptr<SensorLog> log(new SensorLog(with_disk, step, start, files, std::move(observer)));
  if (Status opened = log->open_file(run_folder); !opened.ok()) return Failure{opened.error()};
  log->sample();
  try {
    log->thread_ = start_quiet_thread("sensors.log", [made = log.get()] { made->work(); });
  } catch (const DataError& error) {
    return Failure{error.what()};
  }
  return log;
}

SensorLog::~SensorLog() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stop_.notify_one();
    thread_.join();
  }
  if (file_ >= 0) files_.close(file_);
}

Status SensorLog::open_file(const std::string& run_folder) {
  const std::vector<SensorReading>& readings = sensors_.read(seconds_between(start_, Clock::now()));
  for (const SensorReading& reading : readings) columns_.push_back(reading.missing.empty());
  const std::string header = sensor_header(readings);
  for (int number = 1; number <= kMostFiles; ++number) {
    path_ = run_folder + '/' + sensor_file_name(number);
    file_ = files_.append(path_);
    if (file_ < 0) return cannot_write(path_, files_);
    FileStatus status;
    if (files_.status(file_, status) == 0 && status.bytes == 0) {
      write(header);
      if (lost() > 0) return Failure{news_.warnings.back()};
      return success();
    }
    if (continues(path_, header)) {
      char last = '\n';
      const int reading = files_.open(path_);
      if (reading >= 0) {
        files_.read(reading, &last, 1, status.bytes - 1);
        files_.close(reading);
      }
      torn_ = last != '\n';
      return success();
    }
    files_.close(std::exchange(file_, -1));
  }
  return Failure{fmt::format("{}: there are {} such files, of other sensors", path_, kMostFiles)};
}

bool SensorLog::continues(const std::string& path, const std::string& header) {
  Result<FileLines> lines = FileLines::open(path, files_);
  if (!lines.ok()) return false;
  const Result<bool> more = lines.value().next();
  return more.ok() && more.value() && lines.value().is_ended() && lines.value().line() == header;
}

void SensorLog::sample() {
  const double seconds = seconds_between(start_, Clock::now());
  const int64_t step = step_.load(std::memory_order_relaxed);
  const std::vector<SensorReading>& readings = sensors_.read(seconds);
  const double time =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string line = fmt::format("{},{:.3f},{:.3f}", step, seconds, time);
  for (size_t i = 0; i < readings.size() && i < columns_.size(); ++i) {
    if (!columns_[i]) continue;
    line += ',';
    if (std::isfinite(readings[i].value)) line += fmt::format("{:.10g}", readings[i].value);
  }
  write(line);
  if (observer_) observer_(readings);
  std::vector<Alarm> alarms = alarms_.look(step, seconds, readings);
  if (alarms.empty()) return;
  const std::lock_guard lock(mutex_);
  std::ranges::move(alarms, std::back_inserter(news_.alarms));
  has_news_.store(true, std::memory_order_relaxed);
}

void SensorLog::write(const std::string& line) {
  // What was cut off gets its end: it is then a line that nobody takes.
  const std::string text = (torn_ ? "\n" : "") + line + '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = files_.write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;
      torn_ = true;
      if (lost_.fetch_add(1, std::memory_order_relaxed) > 0) return;
      const std::lock_guard lock(mutex_);
      news_.warnings.push_back(
          fmt::format("cannot write {}: {}: samples are lost until that is possible again", path_,
                      system_reason()));
      has_news_.store(true, std::memory_order_relaxed);
      return;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  torn_ = false;
}

SensorLog::News SensorLog::take_news() {
  const std::lock_guard lock(mutex_);
  has_news_.store(false, std::memory_order_relaxed);
  return std::exchange(news_, {});
}

void SensorLog::work() {
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.interval_seconds));
  Clock::time_point next = Clock::now() + interval;
  try {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (stop_.wait_until(lock, next, [&] { return stopping_; })) break;
      }
      sample();
      // Where a sample took longer than the interval, those in between are left out.
      while (next <= Clock::now()) next += interval;
    }
    sample();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    news_.warnings.push_back(fmt::format("no more samples of sensors: {}", error.what()));
    has_news_.store(true, std::memory_order_relaxed);
  }
}

}  // namespace fullbore
