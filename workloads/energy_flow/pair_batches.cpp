#include "workloads/energy_flow/pair_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/permutation.h"
#include "workloads/energy_flow/embedding_file.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

constexpr size_t kFirstSetting = 2;
constexpr size_t kFirstTokens = 6;

// Which of `count` is the one with this number in the order of all epochs.
int64_t place_of(uint64_t example, uint64_t count, std::optional<uint64_t> seed) {
  const uint64_t place = example % count;
  return static_cast<int64_t>(seed ? Permutation(count, *seed, example / count)(place) : place);
}

}  // namespace

EmbeddingPairs EmbeddingPairs::of_corpus(uint64_t key, int64_t first, int64_t count,
                                         int64_t width) {
  EmbeddingPairs pairs(width);
  SentenceEmbedder embedding_of(width);
  for (std::vector<float>* vectors : {&pairs.inputs_, &pairs.targets_})
    vectors->reserve(static_cast<size_t>(count * width));
  const auto append = [&](std::vector<float>& to, std::vector<std::string>& texts,
                          const std::string& text) {
    const std::vector<float> vector = embedding_of(text);
    to.insert(to.end(), vector.begin(), vector.end());
    texts.push_back(text);
  };
  for (int64_t i = first; i < first + count; ++i) {
    const SentencePair pair = sentence_pair(key, static_cast<uint64_t>(i));
    append(pairs.inputs_, pairs.input_texts_, pair.premise);
    append(pairs.targets_, pairs.target_texts_, pair.hypothesis);
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
    if (record.has_text)
      (records % 2 == 0 ? pairs.input_texts_ : pairs.target_texts_).push_back(record.text);
    if (++records % 1024 == 0) console.live(fmt::format("reading {}: {} records", path, records));
  }
  console.clear();
  if (records % 2 != 0)
    throw DataError(fmt::format(
        "{}: {} records: an input and its target by turns were expected, an even number", path,
        records));
  if (records == 0) throw DataError(fmt::format("{}: no records", path));
  const auto texts = std::ssize(pairs.input_texts_) + std::ssize(pairs.target_texts_);
  if (texts != records) {
    pairs.input_texts_.clear();
    pairs.target_texts_.clear();
  }
  return pairs;
}

PairTokens tokenize_pairs(const EmbeddingPairs& pairs, const TextForm& form,
                          const std::string& source) {
  if (!pairs.has_texts())
    throw DataError(fmt::format(
        "{}: not all records have a text, which the text bridge needs (bridge.encoder)", source));
  PairTokens tokens;
  tokens.length = form.length();
  const auto length = static_cast<size_t>(form.length());
  const auto append = [&](std::vector<int32_t>& rows, const std::string& text, int64_t record) {
    rows.resize(rows.size() + length);
    const Result<bool> cut = form.fill(text, std::span(rows).last(length));
    if (!cut.ok())
      throw DataError(fmt::format("{}: record {}: text: {}", source, record, cut.error()));
    if (cut.value()) ++tokens.cut;
  };
  for (int64_t pair = 0; pair < pairs.size(); ++pair) {
    append(tokens.inputs, pairs.input_text(pair), 2 * pair);
    append(tokens.targets, pairs.target_text(pair), 2 * pair + 1);
  }
  return tokens;
}

uint64_t EmbeddingPairs::hash() const {
  const uint64_t inputs = hash_bytes(inputs_.data(), inputs_.size() * sizeof(float));
  return hash_bytes(targets_.data(), targets_.size() * sizeof(float), inputs);
}

std::vector<BatchField> PairBatches::fields_of(int64_t batch_size, int64_t width, int64_t length) {
  std::vector<BatchField> fields = {{"input", {DType::f32, {batch_size, width}}},
                                    {"target", {DType::f32, {batch_size, width}}}};
  for (const char* name : {"displacement_scale", "noise", "z_bias", "z_bias_per_age"})
    fields.push_back({name, {DType::f32, {}}});
  if (length > 0)
    for (const char* name : {"input_tokens", "target_tokens"})
      fields.push_back({name, {DType::i32, {batch_size, length}}});
  return fields;
}

PairBatches::PairBatches(std::shared_ptr<const EmbeddingPairs> pairs,
                         std::shared_ptr<const PairTokens> tokens, int64_t first, int64_t count,
                         int64_t batch_size, std::optional<uint64_t> seed,
                         std::function<StepSettings(uint64_t position)> settings)
    : pairs_(std::move(pairs)),
      tokens_(std::move(tokens)),
      first_(first),
      count_(count),
      batch_size_(batch_size),
      seed_(seed),
      settings_(std::move(settings)),
      fields_(fields_of(batch_size, pairs_->width(), tokens_ ? tokens_->length : 0)) {}

void PairBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto width = static_cast<size_t>(pairs_->width());
  const size_t length = tokens_ ? static_cast<size_t>(tokens_->length) : 0;
  for (uint64_t row = 0; row < static_cast<uint64_t>(batch_size_); ++row) {
    const uint64_t example = position * static_cast<uint64_t>(batch_size_) + row;
    const int64_t pair = first_ + place_of(example, static_cast<uint64_t>(count_), seed_);
    const auto copy = [&](const auto* from, size_t count, size_t field) {
      using Element = std::remove_cvref_t<decltype(*from)>;
      std::copy_n(from, count, static_cast<Element*>(buffers[field]) + row * count);
    };
    copy(pairs_->input(pair), width, 0);
    copy(pairs_->target(pair), width, 1);
    if (!tokens_) continue;
    const size_t at = static_cast<size_t>(pair) * length;
    copy(tokens_->inputs.data() + at, length, kFirstTokens);
    copy(tokens_->targets.data() + at, length, kFirstTokens + 1);
  }
  const StepSettings settings = settings_(position);
  size_t next = kFirstSetting;
  for (const double value :
       {settings.displacement_scale, settings.noise, settings.z_bias, settings.z_bias_per_age})
    *static_cast<float*>(buffers[next++]) = static_cast<float>(value);
}

std::vector<BatchField> TextBatches::fields_of(int64_t batch_size, int64_t width, int64_t length) {
  return {{"embedding", {DType::f32, {batch_size, width}}},
          {"tokens", {DType::i32, {batch_size, length}}}};
}

TextBatches::TextBatches(std::shared_ptr<const EmbeddingPairs> pairs,
                         std::shared_ptr<const PairTokens> tokens, int64_t first, int64_t count,
                         int64_t batch_size, std::optional<uint64_t> seed)
    : pairs_(std::move(pairs)),
      tokens_(std::move(tokens)),
      first_(first),
      count_(count),
      batch_size_(batch_size),
      seed_(seed),
      fields_(fields_of(batch_size, pairs_->width(), tokens_->length)) {}

void TextBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto width = static_cast<size_t>(pairs_->width());
  const auto length = static_cast<size_t>(tokens_->length);
  for (uint64_t row = 0; row < static_cast<uint64_t>(batch_size_); ++row) {
    const uint64_t example = position * static_cast<uint64_t>(batch_size_) + row;
    const int64_t text = place_of(example, 2 * static_cast<uint64_t>(count_), seed_);
    const int64_t pair = first_ + text / 2;
    const bool is_input = text % 2 == 0;
    const std::vector<int32_t>& rows = is_input ? tokens_->inputs : tokens_->targets;
    std::copy_n(is_input ? pairs_->input(pair) : pairs_->target(pair), width,
                static_cast<float*>(buffers[0]) + row * width);
    std::copy_n(rows.data() + static_cast<size_t>(pair) * length, length,
                static_cast<int32_t*>(buffers[1]) + row * length);
  }
}

}  // namespace fullbore::energy_flow
