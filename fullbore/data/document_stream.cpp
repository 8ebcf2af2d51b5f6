#include "fullbore/data/document_stream.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "fullbore/base/text.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/json_lines_reader.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

// What can be cut nowhere is held whole; what is longer is refused. A byte-level BPE takes some 30 bytes for each of a
// word, a line of JSON about 6.
constexpr size_t kMostWordBytes = size_t{4} << 20;
constexpr size_t kMostLineBytes = size_t{64} << 20;

uint64_t count_lines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

uint64_t line_of(const TextPart& part, size_t offset) {
  if (!part.is_json_lines)
    return part.lines.at(0) + count_lines(std::string_view(part.text).substr(0, offset));
  const auto document =
      std::upper_bound(part.document_ends.begin(), part.document_ends.end(), offset);
  return part.lines.at(static_cast<size_t>(document - part.document_ends.begin()));
}

/// One file of the sources.
class DocumentStream::FileStream {
 public:
  FileStream(TextReader reader, const TextFile& file, const std::string& field)
      : reader_(std::move(reader)),
        json_lines_(file.path, field),
        file_(file),
        hash_(XXH64_createState(), &XXH64_freeState) {
    XXH64_reset(hash_.get(), 0);
  }

  Status next(TextPart& part, const Tokenizer& tokenizer, size_t part_bytes) {
    part = {};
    part.path = file_.path;
    part.is_json_lines = file_.is_json_lines;
    return file_.is_json_lines ? next_documents(part, part_bytes)
                               : next_stretch(part, tokenizer, part_bytes);
  }
  FileHash content() const { return {bytes_, XXH64_digest(hash_.get())}; }

 private:
  /// The next piece of the file to the end of `text`; false at the end.
  Result<bool> read_piece(std::string& text, TextPart& part) {
    const Result<std::string_view> piece = reader_.next();
    if (!piece.ok()) return Failure{piece.error()};
    XXH64_update(hash_.get(), piece.value().data(), piece.value().size());
    bytes_ += piece.value().size();
    part.source_bytes += piece.value().size();
    text += piece.value();
    return !piece.value().empty();
  }

  Status next_stretch(TextPart& part, const Tokenizer& tokenizer, size_t part_bytes) {
    part.lines = {line_};
    part.text = std::move(rest_);
    rest_.clear();
    for (size_t wanted = part_bytes;; wanted = std::min(2 * part.text.size(), kMostWordBytes)) {
      while (part.text.size() < wanted) {
        const Result<bool> more = read_piece(part.text, part);
        if (!more.ok()) return Failure{more.error()};
        if (more.value()) continue;
        part.ends_file = true;
        part.document_ends = {part.text.size()};
        return success();
      }
      if (const size_t cut = tokenizer.last_cut(part.text); cut > 0) {
        rest_ = part.text.substr(cut);
        part.text.resize(cut);
        line_ += count_lines(part.text);
        return success();
      }
      if (part.text.size() >= kMostWordBytes)
        return Failure{
            fmt::format("{}: from line {} on {} without white space between words: a "
                        "byte-level BPE cannot cut it",
                        file_.path, line_, bytes_text(static_cast<double>(kMostWordBytes)))};
    }
  }

  Status next_documents(TextPart& part, size_t part_bytes) {
    while (part.text.size() < part_bytes) {
      const size_t end = rest_.find('\n', searched_);
      if (end == std::string::npos) {
        searched_ = rest_.size();
        // What was taken from the front goes only when more is read: one move per piece.
        rest_.erase(0, taken_);
        searched_ -= taken_;
        taken_ = 0;
        if (rest_.size() > kMostLineBytes)
          return Failure{fmt::format("{}:{}: the line is longer than {}", file_.path, line_,
                                     bytes_text(static_cast<double>(kMostLineBytes)))};
        const Result<bool> more = read_piece(rest_, part);
        if (!more.ok()) return Failure{more.error()};
        if (more.value()) continue;
        part.ends_file = true;
        return add_line(rest_, part);
      }
      const std::string_view line = std::string_view(rest_).substr(taken_, end - taken_);
      if (Status s = add_line(line, part); !s.ok()) return s;
      taken_ = searched_ = end + 1;
      ++line_;
    }
    return success();
  }

  Status add_line(std::string_view line, TextPart& part) {
    const size_t before = part.text.size();
    if (Status s = json_lines_.append_document(line, line_, part.text); !s.ok()) return s;
    if (part.text.size() == before) return success();  // an empty line or document
    part.document_ends.push_back(part.text.size());
    part.lines.push_back(line_);
    return success();
  }

  TextReader reader_;
  JsonLinesReader json_lines_;
  const TextFile& file_;
  std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> hash_;
  uint64_t bytes_ = 0;
  uint64_t line_ = 1;    // of the first byte of `rest_` that is not taken
  std::string rest_;     // read and not handed out yet
  size_t taken_ = 0;     // bytes of `rest_` handed out
  size_t searched_ = 0;  // no line ends in `rest_` between taken_ and here
};

DocumentStream::DocumentStream(const TextSources& sources, const Tokenizer& tokenizer,
                               size_t part_bytes)
    : sources_(sources), tokenizer_(tokenizer), part_bytes_(std::max<size_t>(1, part_bytes)) {}

DocumentStream::~DocumentStream() = default;

Result<bool> DocumentStream::next(TextPart& part) {
  if (file_ == nullptr) {
    if (file_index_ == sources_.files.size()) return false;
    const TextFile& file = sources_.files[file_index_++];
    Result<TextReader> reader =
        TextReader::open(file.path, std::min(part_bytes_, TextReader::kPieceBytes));
    if (!reader.ok()) return Failure{reader.error()};
    file_ = std::make_unique<FileStream>(std::move(reader).value(), file, sources_.field);
  }
  if (const Status s = file_->next(part, tokenizer_, part_bytes_); !s.ok())
    return Failure{s.error()};
  if (part.ends_file) {
    content_.files.push_back(file_->content());
    if (part.is_json_lines) content_.field = sources_.field;
    file_ = nullptr;
  }
  return true;
}

Result<std::vector<char32_t>> collect_characters(const TextSources& sources) {
  constexpr size_t kCodePoints = 0x110000;
  const ByteTokenizer anywhere;
  DocumentStream stream(sources, anywhere);
  TextPart part;
  std::vector<bool> seen(kCodePoints);
  for (;;) {
    const Result<bool> more = stream.next(part);
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) break;
    decode_utf8(part.text, [&](char32_t character) { seen[character] = true; });
  }
  std::vector<char32_t> characters;
  for (size_t code = 0; code < kCodePoints; ++code)
    if (seen[code]) characters.push_back(static_cast<char32_t>(code));
  return characters;
}

}  // namespace fullbore
