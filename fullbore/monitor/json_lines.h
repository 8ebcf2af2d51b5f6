#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// Appends one JSON object per line to a file (https://jsonlines.org). Each line reaches the file
/// by one write, so that a reader never sees a mixture and a crash tears at most the last line.
class JsonLines {
 public:
  /// Creates the file if it is missing.
  static Result<JsonLines> open(const std::string& path, FileSystem& files = system_files());
  JsonLines(JsonLines&& other) noexcept;
  JsonLines& operator=(JsonLines&& other) noexcept;
  ~JsonLines();

  Status write(const nlohmann::ordered_json& record);
  /// What was written is on the disk when it returns, and so is the file's name. From any thread.
  Status sync();

 private:
  JsonLines(int file, std::string path, FileSystem& files)
      : file_(file), path_(std::move(path)), files_(&files) {}
  Failure failure() const;
  int file_;
  std::string path_;
  FileSystem* files_;
};

/// Cuts a file off before its first line that is torn, is no JSON, or that `keep` refuses: what a
/// run wrote after the checkpoint that it is resumed from. Returns the number of lines dropped. A
/// missing file has none.
Result<int64_t> trim_json_lines(const std::string& path,
                                const std::function<bool(const nlohmann::json&)>& keep,
                                FileSystem& files = system_files());

}  // namespace fullbore
