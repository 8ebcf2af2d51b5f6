#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/mapped_file.h"
#include "fullbore/base/result.h"

namespace fullbore::latentwire {

/// What a file of teacher's targets must be to be taken: nothing in it is believed beyond that.
struct TeacherFileForm {
  std::string key;    ///< of everything that the numbers follow from
  int64_t first = 0;  ///< prompt of the first row
  int64_t rows = 0;
  int64_t row_bytes = 0;
};

/// Rows of targets of one receiver for consecutive prompts: a header that says the form, the rows, xxHash64 of both.
/// Little endian, as on every machine that this program runs on.
class TeacherFile {
 public:
  /// Maps the file read-only and reads it once. Failure: it is missing, a link, or has another form, length or hash.
  static Result<TeacherFile> open(const std::string& path, const TeacherFileForm& form);
  /// Writes one atomically. `fill` is called for consecutive rows, of as many bytes as it is handed.
  using Fill = std::function<void(int64_t first, int64_t rows, std::span<std::byte> to)>;
  static Status write(const std::string& path, const TeacherFileForm& form, int64_t rows_at_once,
                      const Fill& fill, FileSystem& files = system_files());

  std::span<const std::byte> row(int64_t index) const;  ///< counted from form.first

 private:
  TeacherFile(std::shared_ptr<const MappedFile> file, int64_t row_bytes, size_t begin)
      : file_(std::move(file)), row_bytes_(row_bytes), begin_(begin) {}
  std::shared_ptr<const MappedFile> file_;
  int64_t row_bytes_;
  size_t begin_;
};

}  // namespace fullbore::latentwire
