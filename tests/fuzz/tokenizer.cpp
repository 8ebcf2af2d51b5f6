// Any bytes as a tokenizer.json, and as vocab.json and merges.txt with a zero byte between them: refused,
// or a tokenizer that writes itself and loses no text.
#include <algorithm>
#include <string>
#include <string_view>

#include "fullbore/data/bpe_files.h"
#include "fullbore/data/number_tokenizer.h"
#include "fullbore/data/recorded_tokenizer.h"
#include "fullbore/data/tokenizer.h"
#include "fullbore/data/utf8.h"
#include "fullbore/data/word_piece_tokenizer.h"
#include "fullbore/data/word_tokenizer.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

void check(const Tokenizer& tokenizer, std::string_view text) {
  const std::string json = tokenizer.to_json();
  const auto again = parse_tokenizer(json, "again").take_or_throw();
  require(again->to_json() == json);
  for (const SpecialTokens special : {SpecialTokens::kAsText, SpecialTokens::kRecognised}) {
    const Result<std::vector<int32_t>> ids = tokenizer.encode(text, special);
    if (!ids.ok()) continue;  // a vocabulary of characters may lack some
    // Unknown characters are what the recorded vocabulary loses, and nothing else; between numbers any
    // white space is as good as another.
    // Word pieces keep neither white space nor case, words no white space.
    const bool numbers = dynamic_cast<const NumberTokenizer*>(&tokenizer) != nullptr;
    const bool pieces = dynamic_cast<const WordPieceTokenizer*>(&tokenizer) != nullptr;
    const bool words = dynamic_cast<const WordTokenizer*>(&tokenizer) != nullptr;
    if (numbers)
      require(tokenizer.encode(tokenizer.decode(ids.value()).take_or_throw()).take_or_throw() ==
              ids.value());
    const bool lossless = !numbers && !pieces && !words &&
                          (dynamic_cast<const RecordedTokenizer*>(&tokenizer) == nullptr ||
                           std::ranges::count(ids.value(), RecordedTokenizer::kUnknown) == 0);
    require(!lossless || tokenizer.decode(ids.value()).take_or_throw() == text);
    require(again->encode(text, special).take_or_throw() == ids.value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view text = bytes.substr(0, decode_utf8(bytes, [](char32_t) {}));
  const Result<std::shared_ptr<const Tokenizer>> parsed = parse_tokenizer(bytes, "fuzz.json");
  if (parsed.ok())
    check(*parsed.value(), text);
  else
    require(parsed.error().starts_with("fuzz.json: not a tokenizer: "));
  const size_t zero = std::min(bytes.find('\0'), size);
  const std::string_view merges = bytes.substr(std::min(zero + 1, size));
  const auto files = parse_vocabulary_and_merges(bytes.substr(0, zero), merges, "fuzz");
  if (files.ok()) check(*files.value(), text);
  return 0;
}
