#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/train/config.h"

namespace fullbore {

/// A run as its folder shows it. Looking at it writes nothing and waits for nobody.
struct RunFolder {
  std::string path;
  std::string name;  ///< of the folder itself
  /// "running"; "killed": nobody goes on with it, and nobody said how it ended; or as summary.json says: "completed",
  /// "interrupted", "failed"; "unknown": that cannot be read.
  std::string status;
  std::optional<Config> config;  ///< none: it cannot be read
  /// Settings of a model that this program has not, as YAML, by their keys.
  std::map<std::string, std::string> foreign = {};
  nlohmann::json summary = nlohmann::json::object();
  int64_t bytes = 0;                             ///< of all files in it
  std::filesystem::file_time_type changed = {};  ///< when it last said something
  std::vector<std::string>
      problems;  ///< a sentence each: what is missing or damaged, what of its settings was ignored

  /// Of the summary; not a number where it says none.
  double figure(const char* key) const;
  int64_t steps() const;  ///< made; 0 where it is not known
};

/// Has this folder the settings of a run?
bool is_run_folder(const std::string& path);

/// DataError: there is no such folder, or it holds no run.
RunFolder look_at_run(const std::string& path);

/// All folders of `parent` that hold a run, by name; those in them are not looked at. DataError: there is no such folder.
std::vector<std::string> runs_in(const std::string& parent);

/// Does a process hold the folder's lock (RunDirectory), as the system tells in `locks`, a file like /proc/locks?
bool is_locked(const std::string& path, const std::string& locks = "/proc/locks");

/// Removes the run with all that is in its folder, links not followed: first it is renamed, so that nobody takes what is
/// half removed for a run. DataError: it is no run, a link to one, or in use. Failure: the system's reason.
Status remove_run(const std::string& path);

}  // namespace fullbore
