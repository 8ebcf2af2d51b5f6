#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/input_file.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// Reads a UTF-8 text of any size in pieces of whole characters; memory stays at one piece.
/// Every failure names the path, and for malformed text the byte offset and the line.
class TextReader {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  /// Refuses what is missing, unreadable, a folder, no regular file, or empty.
  static Result<TextReader> open(const std::string& path, size_t piece_bytes = kPieceBytes);

  /// The next piece, valid UTF-8 and at most piece_bytes long; empty at the end of the text. Valid
  /// until the next call.
  Result<std::string_view> next();

  const std::string& path() const { return file_.path(); }

 private:
  TextReader(InputFile file, size_t piece_bytes);
  Failure malformed() const;

  InputFile file_;
  std::vector<char> buffer_;
  uint64_t offset_ = 0;  ///< in the file, of the buffer's first byte
  uint64_t line_ = 1;    ///< of the buffer's first byte
  size_t taken_ = 0;     ///< bytes of the buffer handed out
  size_t held_ = 0;      ///< bytes of the buffer that are filled
};

/// The whole text in memory; more than `most_bytes` is a Failure, for what needs it whole (a prompt)
/// is small.
Result<std::string> read_text(const std::string& path, uint64_t most_bytes = uint64_t{1} << 30);

}  // namespace fullbore
