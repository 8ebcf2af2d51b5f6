#include "workloads/long_context/recall_accuracy.h"

#include <algorithm>

#include "fullbore/data/split_mix.h"

namespace fullbore::long_context {
namespace {

constexpr uint64_t kMeasuring = 0x6d6561737572;  // apart from the keys of training

}  // namespace

uint64_t recall_key(uint64_t seed, const RecallSizes& sizes, int64_t example) {
  return mixed_key({seed, kMeasuring, static_cast<uint64_t>(sizes.vocabulary),
                    static_cast<uint64_t>(sizes.length), static_cast<uint64_t>(sizes.pairs),
                    static_cast<uint64_t>(example)});
}

RecallAccuracy measure_recall(ContextReader& reader, const RecallSizes& sizes, int64_t examples,
                              uint64_t seed, const std::function<bool(int64_t)>& progress) {
  RecallAccuracy result;
  for (int64_t index = 0; index < examples; ++index) {
    const RecallExample example = make_recall_example(recall_key(seed, sizes, index), sizes);
    const std::span<const int32_t> tokens = example.tokens;
    const auto is_asked = [](int32_t target) { return target >= 0; };
    const auto first = std::ranges::find_if(example.targets, is_asked) - example.targets.begin();
    reader.begin(sizes.length - first - 1);
    size_t taken = 0;
    for (size_t place = 0; place < tokens.size(); ++place) {
      if (!is_asked(example.targets[place])) continue;
      reader.read(tokens.subspan(taken, place + 1 - taken));
      taken = place + 1;
      const std::span<const float> logits = reader.logits();
      const auto likeliest = std::ranges::max_element(logits) - logits.begin();
      ++result.asked;
      result.right += likeliest == example.targets[place] ? 1 : 0;
    }
    result.tokens += sizes.length;
    if (!progress(sizes.length)) break;
  }
  return result;
}

}  // namespace fullbore::long_context
