#include "fullbore/data/unicode_classes.h"

#include <algorithm>
#include <map>

namespace fullbore {
namespace {

constexpr size_t kCodePoints = 0x110000;
constexpr size_t kBlock = 256;

// The property White_Space; Unicode has added none to it since version 4 and takes none away.
constexpr CodePointRange kSpaceRanges[] = {
    {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

}  // namespace

UnicodeClasses::UnicodeClasses() {
  std::vector<CharacterClass> all(kCodePoints, CharacterClass::kOther);
  const auto mark = [&](const CodePointRange* ranges, size_t count, CharacterClass to) {
    for (size_t i = 0; i < count; ++i)
      std::fill(all.begin() + ranges[i].first, all.begin() + ranges[i].last + 1, to);
  };
  mark(kLetterRanges, kLetterRangeCount, CharacterClass::kLetter);
  mark(kNumberRanges, kNumberRangeCount, CharacterClass::kNumber);
  mark(kSpaceRanges, std::size(kSpaceRanges), CharacterClass::kSpace);

  std::map<std::vector<CharacterClass>, uint16_t> known;
  for (auto block = all.begin(); block != all.end(); block += kBlock) {
    const std::vector<CharacterClass> classes(block, block + kBlock);
    const auto [entry, is_new] = known.emplace(classes, static_cast<uint16_t>(known.size()));
    if (is_new) classes_.insert(classes_.end(), classes.begin(), classes.end());
    blocks_.push_back(entry->second);
  }
}

const UnicodeClasses& UnicodeClasses::instance() {
  static const UnicodeClasses classes;
  return classes;
}

}  // namespace fullbore
