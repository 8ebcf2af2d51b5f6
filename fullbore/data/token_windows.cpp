#include "fullbore/data/token_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fullbore/base/philox.h"

namespace fullbore {

TokenSplit split_tokens(int64_t tokens, double validation_fraction, const std::string& source) {
  FB_CHECK(validation_fraction >= 0 && validation_fraction < 1, "fraction {}", validation_fraction);
  const auto boundary =
      static_cast<int64_t>(std::floor(static_cast<double>(tokens) * (1.0 - validation_fraction)));
  return {{source, "training", 0, boundary}, {source, "validation", boundary, tokens}};
}

Result<TokenSplit> split_corpus(const TokenCorpus& tokens, double validation_fraction, SplitBy by,
                                const std::string& source) {
  TokenSplit split = split_tokens(tokens.size(), validation_fraction, source);
  if (by == SplitBy::kToken || split.validation.size() == 0) return split;
  const auto begin_of = [&](int64_t unit) {
    const int64_t document = by == SplitBy::kFile ? tokens.file_begin(unit) : unit;
    return document == tokens.documents() ? tokens.size() : tokens.document(document).begin;
  };
  int64_t low = 1;  // the answer, among [1, units): the last that begins no later than the boundary
  int64_t high = by == SplitBy::kFile ? tokens.files() : tokens.documents();
  if (high < 2)
    return Failure{fmt::format("{}: all of it is one {}, which data.split must not divide", source,
                               by == SplitBy::kFile ? "file" : "document")};
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (begin_of(middle) <= split.training.end ? low : high) = middle;
  }
  split.training.end = split.validation.begin = begin_of(low);
  return split;
}

TokenWindows::TokenWindows(std::shared_ptr<const TokenCorpus> tokens, TokenRange range,
                           WindowOptions options)
    : tokens_(std::move(tokens)), range_(std::move(range)), options_(options) {
  FB_CHECK(options.batch_size >= 1 && options.context >= 1, "batch size {}, context {}",
           options.batch_size, options.context);
  FB_CHECK(0 <= range_.begin && range_.begin <= range_.end && range_.end <= tokens_->size(),
           "range [{}, {}) of {} tokens", range_.begin, range_.end, tokens_->size());
  const TensorType type{DType::i32, Shape{options.batch_size, options.context}};
  fields_ = {{"inputs", type}, {"targets", type}};
}

void TokenWindows::fill_row(int64_t row, int64_t begin, int64_t count,
                            std::span<void* const> buffers) const {
  int32_t* const inputs = static_cast<int32_t*>(buffers[0]) + row * options_.context;
  int32_t* const targets = static_cast<int32_t*>(buffers[1]) + row * options_.context;
  if (count > 0) {
    tokens_->copy(begin, count, inputs);
    tokens_->copy(begin + 1, count, targets);
  }
  std::fill(inputs + count, inputs + options_.context, 0);
  std::fill(targets + count, targets + options_.context, -1);
}

RandomWindows::RandomWindows(std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
                             const WindowOptions& options, uint64_t seed)
    : TokenWindows(std::move(tokens), range, options), seed_(seed) {}

Result<std::unique_ptr<RandomWindows>> RandomWindows::create(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const WindowOptions& options, uint64_t seed) {
  if (range.size() < options.context + 1)
    return Failure{fmt::format(
        "{}: too short: its {} part has {} of {} tokens, and a context of {} needs at least "
        "{}. Take a longer text or a smaller model.context",
        range.source, range.part, range.size(), tokens->size(), options.context,
        options.context + 1)};
  return std::unique_ptr<RandomWindows>(new RandomWindows(std::move(tokens), range, options, seed));
}

int64_t RandomWindows::offset(uint64_t position, int64_t row) const {
  const auto choices = static_cast<uint64_t>(range_.size() - options_.context);
  const uint64_t bits = philox_bits(seed_, position, static_cast<uint64_t>(row));
  // Multiplied rather than divided: no bias worth the name, and one draw per row, so that a row's
  // offset does not depend on the others'.
  const auto drawn = static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * choices) >> 64);
  return range_.begin + static_cast<int64_t>(drawn);
}

void RandomWindows::fill(uint64_t position, std::span<void* const> buffers) const {
  for (int64_t row = 0; row < options_.batch_size; ++row)
    fill_row(row, offset(position, row), options_.context, buffers);
}

Result<std::unique_ptr<SequentialWindows>> SequentialWindows::create(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const WindowOptions& options) {
  if (range.size() < 2)
    return Failure{fmt::format(
        "{}: too short: its {} part has {} of {} tokens, and one prediction needs 2. Take a "
        "longer text or another data.validation_fraction",
        range.source, range.part, range.size(), tokens->size())};
  return std::unique_ptr<SequentialWindows>(
      new SequentialWindows(std::move(tokens), range, options));
}

uint64_t SequentialWindows::batches() const {
  const int64_t per_batch = options_.batch_size * options_.context;
  return static_cast<uint64_t>((range_.size() - 1 + per_batch - 1) / per_batch);
}

int64_t SequentialWindows::row_predictions(uint64_t position, int64_t row) const {
  const int64_t window = static_cast<int64_t>(position) * options_.batch_size + row;
  return std::clamp<int64_t>(range_.size() - 1 - window * options_.context, 0, options_.context);
}

void SequentialWindows::fill(uint64_t position, std::span<void* const> buffers) const {
  position %= batches();
  for (int64_t row = 0; row < options_.batch_size; ++row) {
    const int64_t window = static_cast<int64_t>(position) * options_.batch_size + row;
    fill_row(row, range_.begin + window * options_.context, row_predictions(position, row),
             buffers);
  }
}

}  // namespace fullbore
