#include "fullbore/data/bert_words.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/data/bert_characters.h"
#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

enum Traits : uint8_t {
  kRemoved = 1,
  kSpace = 2,  ///< becomes one
  kIdeograph = 4,
  kSeparator = 8,
  kPunctuation = 16,
  kMark = 32,
  kDecomposed = 64,
  kLowercased = 128
};

/// Traits of every code point, in two steps of lookup as UnicodeClasses has them.
class TraitTable {
 public:
  static const TraitTable& instance() {
    static const TraitTable table;
    return table;
  }
  uint8_t of(char32_t code_point) const {
    const auto value = static_cast<uint32_t>(code_point);
    return traits_[size_t{blocks_[value >> 8]} << 8 | (value & 0xFF)];
  }

 private:
  TraitTable() {
    std::vector<uint8_t> all(0x110000);
    const auto mark = [&](const CodePointRange* ranges, size_t count, Traits trait) {
      for (const CodePointRange& range : std::span(ranges, count))
        for (uint32_t code = range.first; code <= range.last; ++code) all[code] |= trait;
    };
    mark(kBertRemoved, kBertRemovedCount, kRemoved);
    mark(kBertSpaces, kBertSpacesCount, kSpace);
    mark(kBertIdeographs, kBertIdeographsCount, kIdeograph);
    mark(kBertSeparators, kBertSeparatorsCount, kSeparator);
    mark(kBertPunctuation, kBertPunctuationCount, kPunctuation);
    mark(kBertMarks, kBertMarksCount, kMark);
    for (const CharacterChange& change : std::span(kBertDecompositions, kBertDecompositionsCount))
      all[change.from] |= kDecomposed;
    for (const CharacterChange& change : std::span(kBertLowercase, kBertLowercaseCount))
      all[change.from] |= kLowercased;
    for (size_t begin = 0; begin < all.size(); begin += 256) {
      size_t block = 0;
      while (block < traits_.size() &&
             !std::equal(all.begin() + static_cast<ptrdiff_t>(begin),
                         all.begin() + static_cast<ptrdiff_t>(begin) + 256,
                         traits_.begin() + static_cast<ptrdiff_t>(block)))
        block += 256;
      if (block == traits_.size())
        traits_.insert(traits_.end(), all.begin() + static_cast<ptrdiff_t>(begin),
                       all.begin() + static_cast<ptrdiff_t>(begin) + 256);
      blocks_.push_back(static_cast<uint16_t>(block / 256));
    }
  }

  std::vector<uint16_t> blocks_;
  std::vector<uint8_t> traits_;
};

constexpr char32_t kFirstHangul = 0xAC00;
constexpr char32_t kLastHangul = 0xD7A3;

template <class Visit>
void visit_change(const CharacterChange* changes, size_t count, char32_t character,
                  const Visit& visit) {
  const std::span all(changes, count);
  const auto found =
      std::ranges::lower_bound(all, static_cast<uint32_t>(character), {}, &CharacterChange::from);
  for (const uint32_t to : found->to)
    if (to != 0) visit(static_cast<char32_t>(to));
}

/// Calls visit for each character that remains of one without its marks.
template <class Visit>
void decompose(char32_t character, uint8_t traits, const Visit& visit) {
  if ((traits & kMark) != 0) return;
  if ((traits & kDecomposed) != 0)
    return visit_change(kBertDecompositions, kBertDecompositionsCount, character, visit);
  if (character < kFirstHangul || character > kLastHangul) return visit(character);
  const char32_t index = character - kFirstHangul;  // Unicode 16, section 3.12.2
  visit(0x1100 + index / 588);
  visit(0x1161 + index % 588 / 28);
  if (index % 28 != 0) visit(0x11A7 + index % 28);
}

class WordSplitter {
 public:
  WordSplitter(const BertNormalization& normalization,
               const std::function<void(std::string_view)>& visit)
      : normalization_(normalization), visit_(visit) {}

  void add(char32_t character) {
    const uint8_t traits = table_.of(character);
    if ((traits & kRemoved) != 0) return;
    if ((traits & kSpace) != 0) return end_word();
    if ((traits & kIdeograph) != 0) end_word();
    if (normalization_.strip_accents)
      decompose(character, traits, [&](char32_t each) { add_cased(each); });
    else
      add_cased(character);
    if ((traits & kIdeograph) != 0) end_word();
  }
  void end_word() {
    if (!word_.empty()) visit_(word_);
    word_.clear();
  }

 private:
  void add_cased(char32_t character) {
    if (normalization_.lowercase && (table_.of(character) & kLowercased) != 0)
      visit_change(kBertLowercase, kBertLowercaseCount, character,
                   [&](char32_t each) { add_normalised(each); });
    else
      add_normalised(character);
  }
  void add_normalised(char32_t character) {
    const uint8_t traits = table_.of(character);
    if ((traits & (kSeparator | kPunctuation)) != 0) end_word();
    if ((traits & kSeparator) != 0) return;
    append_utf8(word_, character);
    if ((traits & kPunctuation) != 0) end_word();
  }

  const BertNormalization& normalization_;
  const std::function<void(std::string_view)>& visit_;
  const TraitTable& table_ = TraitTable::instance();
  std::string word_;
};

}  // namespace

void for_each_bert_word(std::string_view text, const BertNormalization& normalization,
                        const std::function<void(std::string_view word)>& visit) {
  WordSplitter splitter(normalization, visit);
  decode_utf8(text, [&](char32_t character) { splitter.add(character); });
  splitter.end_word();
}

}  // namespace fullbore
