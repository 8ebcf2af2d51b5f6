#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/data/text_file.h"
#include "fullbore/data/text_sources.h"
#include "fullbore/data/tokenizer.h"

namespace fullbore {

/// A stretch of a text: whole documents of one file, but the first may have begun and the last may go
/// on in another part. Well-formed UTF-8, cut where the tokenizer allows it.
struct TextPart {
  std::string text;
  /// Offsets in `text`, strictly ascending; 0 ends the document of the part before.
  std::vector<size_t> document_ends;
  bool ends_file = false;
  std::string path;
  /// Lines of the file: of each document for JSON lines, else one, of the first byte.
  std::vector<uint64_t> lines;
  bool is_json_lines = false;
  uint64_t source_bytes = 0;  ///< of the file, read since the part before
};
/// The line of the file on which the byte `offset` of the part stands.
uint64_t line_of(const TextPart& part, size_t offset);

/// Reads the documents of a text from front to back; memory stays at one part and one document of
/// JSON lines. Every failure names the path, the line, and what is wrong there.
class DocumentStream {
 public:
  static constexpr size_t kPartBytes = size_t{1} << 20;

  /// `sources` and `tokenizer`, which says where a document may be cut, must outlive the stream.
  DocumentStream(const TextSources& sources, const Tokenizer& tokenizer,
                 size_t part_bytes = kPartBytes);
  ~DocumentStream();

  /// The next part; false at the end of the last file.
  Result<bool> next(TextPart& part);
  /// What was read so far, the file that is being read left out.
  const ContentHash& content() const { return content_; }

 private:
  class FileStream;
  const TextSources& sources_;
  const Tokenizer& tokenizer_;
  size_t part_bytes_;
  size_t file_index_ = 0;
  std::unique_ptr<FileStream> file_;
  ContentHash content_;
};

/// The distinct characters of all documents, ascending.
Result<std::vector<char32_t>> collect_characters(const TextSources& sources);

}  // namespace fullbore
