// Any bytes as JSON lines: read as another reader of JSON reads them, or refused with file and line.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fullbore/data/document_stream.h"
#include "fullbore/data/json_lines_reader.h"
#include "fullbore/data/json_reader.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

/// Nothing in a tokenizer's way: characters only where text is, which the stream has seen to.
class Anywhere : public Tokenizer {
 public:
  std::string kind() const override { return "none"; }
  int64_t vocabulary_size() const override { return 1; }
  size_t append_tokens(std::string_view text, std::vector<int32_t>&) const override {
    return text.size();
  }
  void append_bytes(int32_t, std::string&) const override {}
  std::string to_json() const override { return "{}"; }
};

void check_line(std::string_view line) {
  JsonReader reader(line);
  const bool accepted = reader.skip() && reader.finish();
  require(accepted == reader.error().empty());
  // The other reader refuses numbers that no double holds, which are JSON all the same, and takes a
  // zero byte for the end.
  if (line.find('\0') != std::string_view::npos) return;
  if (nlohmann::json::accept(line))
    require(accepted || reader.error().find("nested deeper") != std::string::npos);
  JsonLinesReader lines("fuzz.jsonl", "text");
  std::string text;
  const Status status = lines.append_document(line, 3, text);
  if (!status.ok()) {
    require(status.error().starts_with("fuzz.jsonl:3: "));
    return;
  }
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) require(json.at("text").get<std::string>() == text);
}

std::string read_in_parts(const std::string& path, size_t bytes, size_t part_bytes) {
  const TextSources sources{"fuzz", {{path, bytes, /*is_json_lines=*/true}}, "text"};
  const Anywhere tokenizer;
  DocumentStream stream(sources, tokenizer, part_bytes);
  TextPart part;
  std::string all;
  for (;;) {
    const Result<bool> more = stream.next(part);
    if (!more.ok()) return "error: " + more.error();
    if (!more.value()) return all;
    size_t begin = 0;
    for (const size_t end : part.document_ends) {
      all += part.text.substr(begin, end - begin) + "|";
      begin = end;
    }
    require(begin == part.text.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (size_t begin = 0; begin <= size;) {
    const size_t end = std::min(bytes.find('\n', begin), size);
    check_line(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  if (size == 0) return 0;
  const MemoryFile file(data, size);
  const std::string whole = read_in_parts(file.path(), size, DocumentStream::kPartBytes);
  require(read_in_parts(file.path(), size, 1 + data[0] % 16) == whole);
  return 0;
}
