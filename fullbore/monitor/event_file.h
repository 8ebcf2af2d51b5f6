#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// A TensorBoard event file: TFRecords, each u64 length, masked CRC-32C of the length, the bytes,
/// masked CRC-32C of the bytes; the bytes are Event messages of Protocol Buffers, of which scalars
/// need these fields (tensorflow/core/util/event.proto, framework/summary.proto):
///   Event          wall_time = 1 (double), step = 2 (int64), file_version = 3, summary = 5,
///                  session_log = 7
///   SessionLog     status = 1 (START = 1)
///   Summary        value = 1
///   Summary.Value  tag = 1, simple_value = 2 (float)
/// One record reaches the file by one write.
class EventFile {
 public:
  /// Makes `folder` and in it a new file events.out.tfevents.<seconds>.<host>.<process>, as
  /// TensorBoard looks for. `seconds`: since 1970.
  static Result<EventFile> create(const std::string& folder, double seconds,
                                  FileSystem& files = system_files());
  EventFile(EventFile&& other) noexcept;
  EventFile& operator=(EventFile&&) = delete;
  ~EventFile();

  const std::string& path() const { return path_; }
  /// Tells readers to forget the points of earlier files from `step` on: a run was resumed there.
  Status restart(int64_t step, double seconds);
  /// One point in each of the named curves.
  Status write(int64_t step, double seconds,
               const std::vector<std::pair<std::string, double>>& scalars);

 private:
  EventFile(std::string path, int file, FileSystem& files);
  Status write_record(std::string_view event);
  std::string path_;
  int file_;
  FileSystem* files_;
};

/// The Event message, for tests.
std::string encode_scalars(int64_t step, double seconds,
                           const std::vector<std::pair<std::string, double>>& scalars);

}  // namespace fullbore
