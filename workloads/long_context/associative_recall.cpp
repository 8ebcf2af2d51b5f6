#include "workloads/long_context/associative_recall.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"

namespace fullbore::long_context {

void check_recall_sizes(const RecallSizes& sizes) {
  const auto refuse = [&](const std::string& reason) {
    throw UsageError(fmt::format("associative recall of {} tokens, {} pairs: {}", sizes.length,
                                 sizes.pairs, reason));
  };
  if (sizes.pairs < 1) refuse("at least one pair was expected");
  if (sizes.length % 2 != 0) refuse("an even number of tokens was expected");
  if (sizes.vocabulary / 2 - 1 < sizes.pairs)
    refuse(
        fmt::format("a vocabulary of {} has {} keys", sizes.vocabulary, sizes.vocabulary / 2 - 1));
  if ((sizes.length - 2 * sizes.pairs) / 2 < sizes.pairs)
    refuse(fmt::format("{} tokens are needed", 4 * sizes.pairs));
}

RecallExample make_recall_example(uint64_t key, const RecallSizes& sizes) {
  check_recall_sizes(sizes);
  SplitMix64 draws(key);
  const int64_t half = sizes.vocabulary / 2;
  const std::vector<int64_t> keys = draws.choose(1, half - 1, sizes.pairs);
  const std::vector<int64_t> values = draws.choose(half, sizes.vocabulary - half, sizes.pairs);
  const std::vector<int64_t> slots =
      draws.choose(0, (sizes.length - 2 * sizes.pairs) / 2, sizes.pairs);
  RecallExample example{std::vector<int32_t>(static_cast<size_t>(sizes.length), 0),
                        std::vector<int32_t>(static_cast<size_t>(sizes.length), -1)};
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto this_key = static_cast<int32_t>(keys[i]);
    const auto value = static_cast<int32_t>(values[i]);
    const auto place = static_cast<size_t>(2 * sizes.pairs + 2 * slots[i]);
    example.tokens[2 * i] = this_key;
    example.tokens[2 * i + 1] = value;
    example.tokens[place] = this_key;
    example.targets[place] = value;
  }
  return example;
}

}  // namespace fullbore::long_context
