#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// Appends one JSON object per line to a file (https://jsonlines.org). Each line reaches the file
/// by one write, so that a reader never sees a mixture and a crash tears at most the last line. The last member of
/// each, "xxhash64", is the checksum of the line without it, with the line's number from 1 as the hash's seed:
/// JsonLineReader compares them.
class JsonLines {
 public:
  /// Creates the file if it is missing. The lines that it has, all with their ends, are counted.
  static Result<JsonLines> open(const std::string& path, FileSystem& files = system_files());
  JsonLines(JsonLines&& other) noexcept;
  JsonLines& operator=(JsonLines&& other) noexcept;
  ~JsonLines();

  Status write(const nlohmann::ordered_json& record);
  /// What was written is on the disk when it returns, and so is the file's name. From any thread.
  Status sync();
  int64_t lines() const { return lines_; }  ///< those that were there included

 private:
  JsonLines(int file, int64_t lines, std::string path, FileSystem& files)
      : file_(file), lines_(lines), path_(std::move(path)), files_(&files) {}
  Failure failure() const;
  int file_;
  int64_t lines_;
  std::string path_;
  FileSystem* files_;
};

struct TrimmedLines {
  int64_t kept = 0;
  int64_t dropped = 0;                ///< behind the last that is kept
  int64_t unchecked = 0;              ///< kept lines without a checksum, of an older version
  std::vector<std::string> problems;  ///< of damaged lines, a sentence each
  std::string copy;                   ///< where the file is as it was; "": nowhere
};

/// Cuts a file off before its first sound line that `keep` refuses: what a run wrote after the checkpoint that it is
/// resumed from. A torn or damaged end goes too. Where damaged lines, or missing ones, are amid sound ones, these stay,
/// numbered anew, and the file as it was is kept beside it: <path>.damaged-1, -2, ... A missing file has no lines.
Result<TrimmedLines> trim_json_lines(const std::string& path,
                                     const std::function<bool(const nlohmann::ordered_json&)>& keep,
                                     FileSystem& files = system_files());

}  // namespace fullbore
