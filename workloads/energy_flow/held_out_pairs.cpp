#include "workloads/energy_flow/held_out_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

int64_t at_most(int64_t count, int64_t most) { return most > 0 ? std::min(count, most) : count; }

std::shared_ptr<const EmbeddingPairs> read(const std::string& path, const Config& config,
                                           Console& console) {
  return std::make_shared<const EmbeddingPairs>(
      EmbeddingPairs::of_file(path, energy_keys(config).model.embedding_width, console));
}

HeldOutPairs of_corpus(const Config& config, int64_t count) {
  const EnergyKeys::Data& keys = energy_keys(config).data;
  const auto pairs = std::make_shared<const EmbeddingPairs>(
      EmbeddingPairs::of_corpus(static_cast<uint64_t>(keys.corpus_key), 0, keys.pairs + count,
                                energy_keys(config).model.embedding_width));
  return {{pairs, keys.pairs, count},
          {pairs, 0, keys.pairs},
          fmt::format("the synthetic corpus {}", keys.corpus_key),
          ""};
}

HeldOutPairs of_file(const Config& config, Console& console) {
  const std::string& path = config.data.path;
  const auto pairs = read(path, config, console);
  const auto held_out =
      static_cast<int64_t>(config.data.validation_fraction * static_cast<double>(pairs->size()));
  const int64_t training = pairs->size() - held_out;
  if (training == 0)
    throw DataError(fmt::format("{}: all {} pairs are held out (data.validation_fraction)", path,
                                pairs->size()));
  return {{pairs, training, held_out}, {pairs, 0, training}, path, ""};
}

}  // namespace

HeldOutPairs held_out_pairs(const Config& config, const std::string& path, int64_t most,
                            Console& console) {
  const bool corpus = config.data.path.empty();
  const int64_t behind =
      path.empty() ? at_most(std::max(most, energy_keys(config).data.validation_pairs), most) : 0;
  HeldOutPairs data = corpus ? of_corpus(config, behind) : of_file(config, console);
  if (!path.empty()) {
    const auto pairs = read(path, config, console);
    data.examples = {pairs, 0, pairs->size()};
    data.name = path;
  } else if (data.examples.count == 0) {
    throw UsageError(
        fmt::format("eval: the run held nothing out of {} ({}); name pairs by "
                    "--data FILE",
                    data.name, corpus ? "data.validation_pairs" : "data.validation_fraction"));
  }
  data.examples.count = at_most(data.examples.count, most);
  data.about = fmt::format("{}: {}{}, {} trained on", data.name, data.examples.count,
                           path.empty() ? " held out" : "", data.training.count);
  return data;
}

}  // namespace fullbore::energy_flow
