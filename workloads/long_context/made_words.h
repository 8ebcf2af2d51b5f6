#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/split_mix.h"

namespace fullbore::long_context {

/// Words, names and numbers of made-up examples, each drawn once: syllables of a consonant and a vowel, so that no
/// list of words is shipped and none runs out.
class WordMaker {
 public:
  explicit WordMaker(uint64_t key) : draws_(key) {}
  /// From here on draws nothing that the other has drawn.
  void avoid(const WordMaker& other) { seen_.insert(other.seen_.begin(), other.seen_.end()); }
  std::string word();                 ///< "lomabe"
  std::string name();                 ///< "Lomabe"
  std::string key_word();             ///< "lomabe-ritusa"
  std::string letters(size_t count);  ///< capitals
  std::string digits(size_t count);   ///< the first is not 0
  std::string uuid();                 ///< "0f3c..-....-....-....-............"
  /// In [0, n).
  uint64_t below(uint64_t n) { return draws_.below(n); }
  double share() { return static_cast<double>(draws_.bits() >> 11) * 0x1p-53; }  ///< in [0, 1)

 private:
  std::string unseen(std::string text);

  SplitMix64 draws_;
  std::set<std::string> seen_;
};

/// Sentences of a text, trimmed, white space within them single: cut behind ".", "!" or "?" where white space follows.
std::vector<std::string> split_sentences(std::string_view text);

/// The most units of which something takes at most `most`, where `size_of` grows with them; at least `least`. -1: not
/// even those fit.
template <class SizeOf>
int64_t most_units(int64_t least, int64_t most, const SizeOf& size_of) {
  if (size_of(least) > most) return -1;
  int64_t fits = least, exceeds = least + 8;
  for (; size_of(exceeds) <= most; exceeds += exceeds - least) fits = exceeds;
  while (exceeds - fits > 1) {
    const int64_t middle = fits + (exceeds - fits) / 2;
    (size_of(middle) <= most ? fits : exceeds) = middle;
  }
  return fits;
}

}  // namespace fullbore::long_context
