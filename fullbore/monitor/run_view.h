#pragma once
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/monitor/chart_picture.h"
#include "fullbore/monitor/file_tail.h"
#include "fullbore/monitor/progress.h"
#include "fullbore/monitor/sensor_file.h"

namespace fullbore {

/// A run seen from outside, by the files that it writes: metrics.jsonl, sensors.csv and summary.json. Nothing is locked
/// or changed. The files are anybody's: what they say is bounded, and texts are escaped where they are shown.
class RunView {
 public:
  /// `total_steps`: of its configuration; 0: not known.
  RunView(std::string folder, int64_t total_steps);

  /// Reads what has come. Whether there is more to read at once.
  bool update();

  const std::string& folder() const { return folder_; }
  bool is_gone() const { return is_gone_; }  ///< the folder was removed
  const std::string& status() const {
    return status_;
  }  ///< "running", "completed", ...; "" before the first step
  const Progress& progress() const { return progress_; }
  const std::vector<ChartCurve>& curves() const {
    return curves_;
  }  ///< training and validation loss
  const std::vector<std::pair<std::string, double>>& phases() const {
    return phases_;
  }  ///< seconds up to now, those of a run that goes on a little late

  /// The sensors' last values, titles as in sensors.csv.
  const std::vector<std::string>& sensor_titles() const { return columns_.titles(); }
  const std::vector<double>& sensor_values() const { return last_row_.values; }
  double last_sample_time() const { return last_row_.time; }  ///< since 1970; 0: none

  struct AlarmLine {
    int64_t step = 0;
    bool raised = false;
    std::string message;
  };
  const std::deque<AlarmLine>& alarms() const { return alarms_; }  ///< the last ones, newest last

 private:
  void forget_metrics();
  void take_metrics(const std::string& line);
  /// Of keys that end like this.
  void take_phases(const nlohmann::ordered_json& seconds, std::string_view suffix);
  bool update_sensors();
  void update_summary();

  std::string folder_;
  int64_t total_steps_;
  FileTail metrics_;
  FileTail sensors_;
  int sensor_file_ = 1;  ///< its number
  bool has_header_ = false;
  SensorColumns columns_;
  SensorRow last_row_;
  bool is_gone_ = false;
  std::string status_;
  Progress progress_;
  std::vector<ChartCurve> curves_;
  std::deque<AlarmLine> alarms_;
  std::vector<std::pair<std::string, double>> phases_;
  int64_t last_step_ = 0;
  double last_seconds_ = 0;
};

}  // namespace fullbore
