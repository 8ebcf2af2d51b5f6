// Any bytes as a tokenizer.json, as a rank file, and as vocab.json and merges.txt with a zero byte between them: refused,
// or a tokenizer that writes itself and loses no text but what its normal form and the flags of its tokens take.
#include <algorithm>
#include <string>
#include <string_view>

#include "fullbore/data/bpe_files.h"
#include "fullbore/data/bpe_ranks.h"
#include "fullbore/data/composed_text.h"
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
    const bool strips =
        special == SpecialTokens::kRecognised &&
        std::ranges::any_of(tokenizer.special_tokens(), [](const SpecialToken& token) {
          return token.strips_left || token.strips_right || token.normalized;
        });
    const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
    std::string buffer;
    const std::string_view kept =
        bpe != nullptr && bpe->vocabulary().settings.composes ? composed_text(text, buffer) : text;
    // A special token in a text of another form cuts it where the form does not.
    const bool cut = kept != text && special == SpecialTokens::kRecognised;
    require(!lossless || strips || cut || tokenizer.decode(ids.value()).take_or_throw() == kept);
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
  const auto ranks = parse_rank_file(bytes, "qwen2", "fuzz.tiktoken");
  if (ranks.ok())
    check(*ranks.value(), text);
  else
    require(ranks.error().starts_with("fuzz.tiktoken:"));
  return 0;
}
