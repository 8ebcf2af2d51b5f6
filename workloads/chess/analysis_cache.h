#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fullbore/base/file_system.h"
#include "workloads/chess/chess_record.h"

namespace fullbore::chess {

/// What engines said, in memory and in a file that several processes may share: each entry is one line with a checksum,
/// appended at once. What is torn, truncated or changed counts as absent; a file that cannot be written loses entries and
/// is no error. Entries of other settings stay in the file and are passed over.
class AnalysisCache {
 public:
  /// `settings`: analysis_settings(). Reads what `path` holds; "": in memory alone.
  AnalysisCache(std::string path, std::string_view settings, FileSystem& files = system_files());

  /// Any thread. Moves as they were put, best first.
  std::optional<std::vector<RankedMove>> find(const std::string& fen) const;
  void put(const std::string& fen, const std::vector<RankedMove>& moves);

  size_t size() const;
  int64_t damaged() const { return damaged_; }  ///< lines that were passed over as it was opened
  int64_t unwritten() const;                    ///< entries that the file did not take

 private:
  void read();
  bool read_entry(std::string_view line);
  void remember(const std::string& fen, std::vector<RankedMove> moves);
  bool append(const std::string& line);

  std::string path_;
  std::string settings_;  ///< hashed, in hexadecimal
  FileSystem* files_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<RankedMove>> entries_;
  std::deque<std::string> order_;  ///< of entries, the oldest first
  int64_t damaged_ = 0;
  int64_t unwritten_ = 0;
  uint64_t file_bytes_ = 0;
};

}  // namespace fullbore::chess
