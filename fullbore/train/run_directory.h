#pragma once
#include <string>

namespace fullbore {

/// The folder of one run. Its files:
///   config.resolved.yaml   every setting; reproduces the run
///   config.given.yaml      the same before memory was fitted, where that changed any
///   metrics.jsonl          one JSON object per line
///   sensors.csv            samples of sensors: monitor/sensor_log.h; sensors-2.csv, ... of other hardware
///   log.txt                what was said, with times
///   summary.json           how it ended
///   checkpoints/           step-N, and the links last and best: ckpt/checkpoint_store.h
///   bad_steps/             steps that were not finite, for `fullbore replay-step`
///   tensorboard/           event files, where log.tensorboard asks for them
class RunDirectory {
 public:
  /// For a new run. `path` may exist but must hold no run yet: UsageError that says what would do.
  static RunDirectory create(const std::string& path);
  /// For a new run in <parent>/<name>-N, N one more than the largest there is.
  static RunDirectory create_numbered(const std::string& parent, const std::string& name);
  /// For a run to go on with. DataError if it does not exist.
  static RunDirectory open(const std::string& path);
  /// The path <parent>/<name>-N with the largest N, or "".
  static std::string latest_numbered(const std::string& parent, const std::string& name);

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();  ///< lets other processes use it

  static constexpr const char* kConfig = "config.resolved.yaml";
  static constexpr const char* kGivenConfig = "config.given.yaml";

  const std::string& path() const { return path_; }
  std::string config() const { return path_ + '/' + kConfig; }
  std::string given_config() const { return path_ + '/' + kGivenConfig; }
  /// Writes both, with a checksum in comments; no given_config() where `given` is empty. DataError.
  void keep_config(const std::string& resolved, const std::string& given) const;
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string sensors() const { return path_ + "/sensors.csv"; }
  std::string log() const { return path_ + "/log.txt"; }
  std::string summary() const { return path_ + "/summary.json"; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string bad_steps() const { return path_ + "/bad_steps"; }
  std::string tensorboard() const { return path_ + "/tensorboard"; }

 private:
  /// Locks the folder, which exists: two processes must not write one run.
  explicit RunDirectory(std::string path);
  std::string path_;
  int lock_ = -1;
};

}  // namespace fullbore
