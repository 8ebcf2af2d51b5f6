#include "workloads/energy_flow/held_out_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

std::shared_ptr<const EmbeddingPairs> read(const std::string& path, const Config& config,
                                           Console& console) {
  return std::make_shared<const EmbeddingPairs>(
      EmbeddingPairs::of_file(path, energy_keys(config).model.embedding_width, console));
}

PairRange of_corpus(const Config& config, int64_t first, int64_t count) {
  const auto key = static_cast<uint64_t>(energy_keys(config).data.corpus_key);
  return {std::make_shared<const EmbeddingPairs>(EmbeddingPairs::of_corpus(
              key, first, count, energy_keys(config).model.embedding_width)),
          0, count};
}

HeldOutPairs from_corpus(const Config& config, const HeldOutChoice& choice) {
  const EnergyKeys::Data& keys = energy_keys(config).data;
  HeldOutPairs data;
  if (choice.training)
    data.training = of_corpus(config, 0, std::min(keys.pairs, kMostTrainingPairs));
  data.trained_on = keys.pairs;
  data.name = fmt::format("the synthetic corpus {}", keys.corpus_key);
  if (choice.path.empty())
    data.examples = of_corpus(config, keys.pairs + choice.first,
                              choice.most > 0 ? choice.most : keys.validation_pairs);
  return data;
}

HeldOutPairs from_file(const Config& config, Console& console) {
  const std::string& path = config.data.path;
  const auto pairs = read(path, config, console);
  const auto held_out =
      static_cast<int64_t>(config.data.validation_fraction * static_cast<double>(pairs->size()));
  HeldOutPairs data;
  data.trained_on = pairs->size() - held_out;
  if (data.trained_on == 0)
    throw DataError(fmt::format("{}: all {} pairs are held out (data.validation_fraction)", path,
                                pairs->size()));
  data.examples = {pairs, data.trained_on, held_out};
  data.training = {pairs, 0, std::min(data.trained_on, kMostTrainingPairs)};
  data.name = path;
  return data;
}

PairRange part(const PairRange& range, const HeldOutChoice& choice) {
  const int64_t first = std::min(choice.first, range.count), left = range.count - first;
  return {range.pairs, range.first + first, choice.most > 0 ? std::min(left, choice.most) : left};
}

}  // namespace

HeldOutPairs held_out_pairs(const Config& config, const HeldOutChoice& choice, Console& console) {
  const bool corpus = config.data.path.empty(), own_file = !choice.path.empty();
  HeldOutPairs data;
  if (corpus)
    data = from_corpus(config, choice);
  else if (choice.training || !own_file)
    data = from_file(config, console);
  if (own_file) {
    const auto pairs = read(choice.path, config, console);
    data.examples = {pairs, 0, pairs->size()};
    data.name = choice.path;
  } else if (data.examples.count == 0) {
    throw UsageError(
        fmt::format("eval: the run held nothing out of {} ({}); name pairs by "
                    "--data FILE",
                    data.name, corpus ? "data.validation_pairs" : "data.validation_fraction"));
  }
  if (!corpus || own_file) data.examples = part(data.examples, choice);
  data.about = fmt::format("{}: {}{}, {} trained on", data.name, data.examples.count,
                           own_file ? "" : " held out", data.trained_on);
  return data;
}

}  // namespace fullbore::energy_flow
