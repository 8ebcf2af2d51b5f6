#pragma once
#include <cstdint>
#include <vector>

namespace fullbore::long_context {

/// Multi-query associative recall: keys and their values side by side, then the keys again, whose
/// values are to be told.
/// Source: Arora et al. 2023, "Zoology", arXiv:2312.04927, section 3.
struct RecallSizes {
  int64_t vocabulary = 256;  ///< V: 0 is filler, keys below V/2, values from there
  int64_t length = 64;       ///< T
  int64_t pairs = 4;         ///< n
  bool operator==(const RecallSizes&) const = default;
};
/// UsageError where there are not enough keys, values or places: 2 n <= T - 2 n for even T.
void check_recall_sizes(const RecallSizes& sizes);

struct RecallExample {
  std::vector<int32_t> tokens;   ///< [T]
  std::vector<int32_t> targets;  ///< [T], the value at each place that has a key again, else -1
};

/// The example of `key`, by SplitMix64: keys, values and places are chosen in turn. Pairs fill the
/// first 2 n places; the rest are slots of two, of which n begin with a key.
RecallExample make_recall_example(uint64_t key, const RecallSizes& sizes);

}  // namespace fullbore::long_context
