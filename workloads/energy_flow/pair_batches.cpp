#include "workloads/energy_flow/pair_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/permutation.h"
#include "workloads/energy_flow/embedding_file.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {

EmbeddingPairs EmbeddingPairs::of_corpus(uint64_t key, int64_t first, int64_t count,
                                         int64_t width) {
  EmbeddingPairs pairs(width);
  const auto append = [&](std::vector<float>& to, const std::string& text) {
    const std::vector<float> vector = sentence_embedding(text, width);
    to.insert(to.end(), vector.begin(), vector.end());
  };
  for (int64_t i = first; i < first + count; ++i) {
    const SentencePair pair = sentence_pair(key, static_cast<uint64_t>(i));
    append(pairs.inputs_, pair.premise);
    append(pairs.targets_, pair.hypothesis);
  }
  return pairs;
}

EmbeddingPairs EmbeddingPairs::of_file(const std::string& path, int64_t width, Console& console) {
  EmbeddingPairs pairs(width);
  const std::unique_ptr<EmbeddingReader> reader =
      open_embeddings(path, {.width = width}).take_or_throw();
  EmbeddingRecord record;
  int64_t records = 0;
  while (reader->next(record).take_or_throw()) {
    std::vector<float>& to = records % 2 == 0 ? pairs.inputs_ : pairs.targets_;
    to.insert(to.end(), record.vector.begin(), record.vector.end());
    if (++records % 1024 == 0) console.live(fmt::format("reading {}: {} records", path, records));
  }
  console.clear();
  if (records % 2 != 0)
    throw DataError(fmt::format(
        "{}: {} records: an input and its target by turns were expected, an even number", path,
        records));
  if (records == 0) throw DataError(fmt::format("{}: no records", path));
  return pairs;
}

uint64_t EmbeddingPairs::hash() const {
  const uint64_t inputs = hash_bytes(inputs_.data(), inputs_.size() * sizeof(float));
  return hash_bytes(targets_.data(), targets_.size() * sizeof(float), inputs);
}

std::vector<BatchField> PairBatches::fields_of(int64_t batch_size, int64_t width) {
  std::vector<BatchField> fields = {{"input", {DType::f32, {batch_size, width}}},
                                    {"target", {DType::f32, {batch_size, width}}}};
  for (const char* name : {"displacement_scale", "noise", "z_bias", "z_bias_per_age"})
    fields.push_back({name, {DType::f32, {}}});
  return fields;
}

PairBatches::PairBatches(std::shared_ptr<const EmbeddingPairs> pairs, int64_t first, int64_t count,
                         int64_t batch_size, std::optional<uint64_t> seed,
                         std::function<StepSettings(uint64_t position)> settings)
    : pairs_(std::move(pairs)),
      first_(first),
      count_(count),
      batch_size_(batch_size),
      seed_(seed),
      settings_(std::move(settings)),
      fields_(fields_of(batch_size, pairs_->width())) {}

void PairBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto count = static_cast<uint64_t>(count_);
  const auto width = static_cast<size_t>(pairs_->width());
  auto* input = static_cast<float*>(buffers[0]);
  auto* target = static_cast<float*>(buffers[1]);
  for (uint64_t row = 0; row < static_cast<uint64_t>(batch_size_); ++row) {
    const uint64_t example = position * static_cast<uint64_t>(batch_size_) + row;
    const uint64_t epoch = example / count;
    uint64_t place = example % count;
    if (seed_) place = Permutation(count, *seed_, epoch)(place);
    const int64_t pair = first_ + static_cast<int64_t>(place);
    std::copy_n(pairs_->input(pair), width, input + row * width);
    std::copy_n(pairs_->target(pair), width, target + row * width);
  }
  const StepSettings settings = settings_(position);
  size_t next = 2;
  for (const double value :
       {settings.displacement_scale, settings.noise, settings.z_bias, settings.z_bias_per_age})
    *static_cast<float*>(buffers[next++]) = static_cast<float>(value);
}

}  // namespace fullbore::energy_flow
