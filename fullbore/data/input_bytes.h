#pragma once
#include <memory>
#include <string>

#include "fullbore/base/input_file.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// The bytes of a file from its begin on; of a gzip file (one member or several), what it holds.
class InputBytes {
 public:
  static Result<InputBytes> open(const std::string& path);
  InputBytes(InputBytes&&) noexcept;
  InputBytes& operator=(InputBytes&&) noexcept;
  ~InputBytes();

  const std::string& path() const { return file_.path(); }
  bool is_compressed() const { return inflater_ != nullptr; }
  /// Up to `bytes`; 0 only at the end. Failure: the disk, damaged or truncated gzip.
  Result<size_t> read(char* data, size_t bytes);

 private:
  class Inflater;
  explicit InputBytes(InputFile file);
  Result<size_t> read_file(char* data, size_t bytes);

  InputFile file_;
  uint64_t offset_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace fullbore
