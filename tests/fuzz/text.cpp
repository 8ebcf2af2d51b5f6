// Any bytes as a text: pieces of any size agree, words and characters lose nothing.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/composed_text.h"
#include "fullbore/data/pre_tokenizer.h"
#include "fullbore/data/text_file.h"
#include "fullbore/data/utf8.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

/// The text, or the message with which it is refused.
std::string read_in_pieces(const std::string& path, size_t piece_bytes) {
  Result<TextReader> reader = TextReader::open(path, piece_bytes);
  if (!reader.ok()) return reader.error();
  std::string text;
  for (;;) {
    const Result<std::string_view> piece = reader.value().next();
    if (!piece.ok()) return piece.error();
    if (piece.value().empty()) return text;
    text += piece.value();
  }
}

/// The ends of the words of `text`, behind `offset`.
std::vector<size_t> word_ends(std::string_view text, WordSplit split, size_t offset) {
  std::vector<size_t> ends;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const next = word_end(at, end, split);
    const std::string_view word(at, static_cast<size_t>(next - at));
    require(next > at && next <= end && decode_utf8(word, [](char32_t) {}) == word.size());
    at = next;
    ends.push_back(offset + static_cast<size_t>(at - text.data()));
  }
  return ends;
}

void check_words(std::string_view text, WordSplit split) {
  const size_t cut = last_word_boundary(text, split);
  require(cut < text.size());
  std::vector<size_t> halves = word_ends(text.substr(0, cut), split, 0);
  for (const size_t end : word_ends(text.substr(cut), split, cut)) halves.push_back(end);
  require(halves == word_ends(text, split, 0));
}

void check_text(std::string_view bytes, size_t piece_bytes) {
  const MemoryFile file(bytes.data(), bytes.size());
  const std::string whole = read_in_pieces(file.path(), TextReader::kPieceBytes);
  require(read_in_pieces(file.path(), piece_bytes) == whole);
  std::string again;
  std::set<char32_t> characters;
  size_t count = 0;
  const size_t valid = decode_utf8(bytes, [&](char32_t c) {
    append_utf8(again, c);
    characters.insert(c);
    ++count;
  });
  require(again == bytes.substr(0, valid));
  const bool is_text = !bytes.empty() && valid == bytes.size();
  require(is_text == (whole == bytes));
  if (!is_text) return;
  const CharacterTokenizer tokenizer({characters.begin(), characters.end()});
  const std::vector<int32_t> ids = tokenizer.encode(bytes).take_or_throw();
  require(ids.size() == count);
  require(tokenizer.decode(ids).take_or_throw() == bytes);
  for (const WordSplit split :
       {WordSplit::kGpt2, WordSplit::kLlama3, WordSplit::kQwen2, WordSplit::kSmolLm})
    check_words(bytes, split);
  std::string buffer;
  const std::string composed(composed_text(bytes, buffer));
  require(decode_utf8(composed, [](char32_t) {}) == composed.size());
  require(composed_text(composed, buffer) == composed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0) check_text(bytes.substr(1), 1 + data[0] % 32);
  return 0;
}
