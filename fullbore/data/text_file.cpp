#include "fullbore/data/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/text.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr size_t kLongestCharacter = 4;

uint64_t count_lines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

// A small file takes a small buffer: clearing a mebibyte is most of the work of reading a kilobyte.
TextReader::TextReader(InputFile file, size_t piece_bytes)
    : file_(std::move(file)),
      buffer_(
          std::max(file_.bytes() > 0 ? std::min<uint64_t>(piece_bytes, file_.bytes()) : piece_bytes,
                   kLongestCharacter)) {}

Result<TextReader> TextReader::open(const std::string& path, size_t piece_bytes) {
  if (path.empty()) return Failure{"no text file is named: data.path is empty"};
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  char first = 0;
  const Result<size_t> count = file.value().read(0, &first, 1);
  if (!count.ok()) return Failure{count.error()};
  if (count.value() == 0) return Failure{fmt::format("{} is empty: text was expected", path)};
  return TextReader(std::move(file).value(), piece_bytes);
}

Result<std::string_view> TextReader::next() {
  // Whatever the last piece left over moves to the front.
  line_ += count_lines({buffer_.data(), taken_});
  offset_ += taken_;
  held_ -= taken_;
  std::memmove(buffer_.data(), buffer_.data() + taken_, held_);
  taken_ = 0;
  const Result<size_t> count =
      file_.read(offset_ + held_, buffer_.data() + held_, buffer_.size() - held_);
  if (!count.ok()) return Failure{count.error()};
  held_ += count.value();

  // What ends in the middle of a character, or is none, is left for the next call: it then stands in
  // front with all the bytes that it may need, so that the message does not depend on the pieces.
  const std::string_view piece(buffer_.data(), held_);
  taken_ = decode_utf8(piece, [](char32_t) {});
  if (taken_ == 0 && held_ > 0) return malformed();
  return piece.substr(0, taken_);
}

Failure TextReader::malformed() const {
  return {
      fmt::format("{}: not UTF-8 text: {} (byte {}, line {}). Convert it, for example with "
                  "iconv -f latin1 -t utf-8",
                  path(), describe_utf8_error({buffer_.data(), held_}, 0), offset_, line_)};
}

Result<std::string> read_text(const std::string& path, uint64_t most_bytes) {
  Result<TextReader> opened = TextReader::open(path);
  if (!opened.ok()) return Failure{opened.error()};
  std::string text;
  for (;;) {
    const Result<std::string_view> piece = opened.value().next();
    if (!piece.ok()) return Failure{piece.error()};
    if (piece.value().empty()) return text;
    text += piece.value();
    if (text.size() > most_bytes)
      return Failure{
          fmt::format("{} is longer than {}", path, bytes_text(static_cast<double>(most_bytes)))};
  }
}

}  // namespace fullbore
