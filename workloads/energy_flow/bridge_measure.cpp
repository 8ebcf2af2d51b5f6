#include "workloads/energy_flow/bridge_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fullbore/base/error.h"

namespace fullbore::energy_flow {
namespace {

// Between reports of progress.
constexpr int64_t kPairsAtATime = 64;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return words;
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return product / std::sqrt(of_a * of_b);
}

void require_texts(const PairRange& examples) {
  if (!examples.pairs->has_texts())
    throw UsageError("eval: the pairs have no texts, which the text bridge is measured by");
}

// Calls for parts of the range, [begin, end).
template <class Measure>
void by_parts(const PairRange& examples, const std::function<void(int64_t)>& progress,
              const Measure& measure) {
  const int64_t last = examples.first + examples.count;
  for (int64_t begin = examples.first; begin < last; begin += kPairsAtATime) {
    const int64_t end = std::min(begin + kPairsAtATime, last);
    measure(begin, end);
    progress(end - examples.first);
  }
}

}  // namespace

double words_right(std::string_view text, std::string_view written) {
  const std::vector<std::string_view> words = words_of(text), others = words_of(written);
  const size_t places = std::max(words.size(), others.size());
  if (places == 0) return 1;
  size_t right = 0;
  for (size_t i = 0; i < std::min(words.size(), others.size()); ++i) right += words[i] == others[i];
  return static_cast<double>(right) / static_cast<double>(places);
}

double word_overlap(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> of_a = words_of(a), of_b = words_of(b);
  const std::set<std::string_view> first(of_a.begin(), of_a.end());
  std::set<std::string_view> all(of_b.begin(), of_b.end());
  const auto both =
      std::ranges::count_if(all, [&](std::string_view word) { return first.contains(word); });
  all.insert(first.begin(), first.end());
  return all.empty() ? 1 : static_cast<double>(both) / static_cast<double>(all.size());
}

BridgeScores measure_bridge(TrainedBridge& bridge, const PairRange& examples,
                            const WritingOptions& options,
                            const std::function<void(int64_t done)>& progress) {
  require_texts(examples);
  const EmbeddingPairs& pairs = *examples.pairs;
  const auto width = static_cast<size_t>(pairs.width()),
             cells = static_cast<size_t>(bridge.cells());
  BridgeScores scores;
  by_parts(examples, progress, [&](int64_t begin, int64_t end) {
    std::vector<std::string> texts;
    std::vector<float> embeddings;
    for (int64_t pair = begin; pair < end; ++pair) {
      texts.insert(texts.end(), {pairs.input_text(pair), pairs.target_text(pair)});
      for (const float* vector : {pairs.input(pair), pairs.target(pair)})
        embeddings.insert(embeddings.end(), vector, vector + width);
    }
    const std::vector<float> surfaces = bridge.map(embeddings), encoded = bridge.encode(texts);
    const std::vector<std::string> written = bridge.write(surfaces, options);
    const std::vector<std::string> again = bridge.write(encoded, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      scores.encoder_cosine.push_back(cosine(std::span(surfaces).subspan(i * cells, cells),
                                             std::span(encoded).subspan(i * cells, cells)));
      scores.words.push_back(words_right(texts[i], written[i]));
      scores.texts.push_back(scores.words.back() == 1 ? 1 : 0);
      scores.round_trip.push_back(words_right(texts[i], again[i]));
    }
  });
  return scores;
}

std::vector<double> measure_overlap(TrainedBridge& bridge, const PairRange& examples,
                                    const WritingOptions& options,
                                    const std::function<void(int64_t done)>& progress) {
  require_texts(examples);
  const EmbeddingPairs& pairs = *examples.pairs;
  const auto width = static_cast<size_t>(pairs.width());
  std::vector<double> overlaps;
  by_parts(examples, progress, [&](int64_t begin, int64_t end) {
    std::vector<float> embeddings;
    for (int64_t pair = begin; pair < end; ++pair)
      embeddings.insert(embeddings.end(), pairs.input(pair), pairs.input(pair) + width);
    const std::vector<std::string> written =
        bridge.write(bridge.flow(bridge.map(embeddings)), options);
    for (int64_t pair = begin; pair < end; ++pair)
      overlaps.push_back(
          word_overlap(pairs.target_text(pair), written[static_cast<size_t>(pair - begin)]));
  });
  return overlaps;
}

}  // namespace fullbore::energy_flow
