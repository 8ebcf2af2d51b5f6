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
/// appended at once. What is torn, truncated or changed counts as absent; a file that cannot be read or written loses
/// entries and is no error, but told. Entries of other settings stay in the file and are passed over.
class AnalysisCache {
 public:
  /// `settings`: analysis_settings(). Reads what `path` holds; "": in memory alone.
  AnalysisCache(std::string path, std::string_view settings, FileSystem& files = system_files());
  ~AnalysisCache();  ///< what was put is on the disk
  AnalysisCache(const AnalysisCache&) = delete;
  AnalysisCache& operator=(const AnalysisCache&) = delete;

  /// Any thread. Moves as they were put, best first.
  std::optional<std::vector<RankedMove>> find(const std::string& fen) const;
  void put(const std::string& fen, const std::vector<RankedMove>& moves);

  size_t size() const;
  int64_t damaged() const { return damaged_; }  ///< lines that were passed over as it was opened
  int64_t unwritten() const;                    ///< entries that the file did not take
  /// What is wrong with the file, a sentence each, once. Any thread.
  std::vector<std::string> take_notices();

 private:
  void read();
  bool read_entry(std::string_view line);
  void remember(const std::string& fen, std::vector<RankedMove> moves);
  std::string append(std::string_view bytes);
  std::string sync();

  std::string path_;
  std::string settings_;  ///< hashed, in hexadecimal
  FileSystem* files_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<RankedMove>> entries_;
  std::deque<std::string> order_;  ///< of entries, the oldest first
  int64_t damaged_ = 0;
  int64_t unwritten_ = 0;
  int64_t unsynced_ = 0;
  bool is_new_ = false;       ///< the file's name is not on the disk
  bool tells_writes_ = true;  ///< that entries are lost was not told yet
  uint64_t file_bytes_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace fullbore::chess
