#include "fullbore/data/token_sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

SequenceSet sequences_of(const TokenRange& range, int64_t sequences) {
  FB_CHECK(sequences >= 1, "{} sequences", sequences);
  const int64_t length = range.size() / sequences;
  return {range.source, range.part, sequences, range.begin, length, length};
}

SequenceSplit split_sequences(int64_t tokens, int64_t sequences, double validation_fraction,
                              const std::string& source) {
  const SequenceSet all = sequences_of({source, "training", 0, tokens}, sequences);
  const TokenSplit sequence = split_tokens(all.length, validation_fraction, source);
  SequenceSplit split{all, all};
  split.training.length = sequence.training.size();
  split.validation.part = "validation";
  split.validation.begin = sequence.validation.begin;
  split.validation.length = sequence.validation.size();
  return split;
}

std::vector<BatchField> sequence_fields(int64_t sequences, const SequenceOptions& options) {
  const TensorType tokens{DType::i32, {sequences, options.context * options.segments}};
  return {{"inputs", tokens},
          {"targets", tokens},
          {"resets", {DType::boolean, {sequences, options.segments}}}};
}

TokenSequences::TokenSequences(std::shared_ptr<const TokenCorpus> tokens, SequenceSet set,
                               SequenceOptions options)
    : tokens_(std::move(tokens)),
      set_(std::move(set)),
      options_(options),
      fields_(sequence_fields(set_.sequences, options)) {}

Result<std::unique_ptr<TokenSequences>> TokenSequences::create(
    std::shared_ptr<const TokenCorpus> tokens, const SequenceSet& set,
    const SequenceOptions& options) {
  FB_CHECK(options.context >= 1 && options.segments >= 1, "{} segments of {} tokens",
           options.segments, options.context);
  FB_CHECK(set.sequences >= 1 && set.begin >= 0 && set.length <= set.stride &&
               set.begin + (set.sequences - 1) * set.stride + set.length <= tokens->size(),
           "{} sequences of {} tokens, {} apart, from {} on, of {}", set.sequences, set.length,
           set.stride, set.begin, tokens->size());
  const int64_t needed = options.context * options.segments + 1;
  if (set.length < needed)
    return Failure{fmt::format(
        "{}: too short: the {} part of each of {} sequences has {} tokens, and a batch needs {} of "
        "each. Take a longer text, a smaller train.batch_size or a smaller model.context",
        set.source, set.part, set.sequences, set.length, needed)};
  return std::unique_ptr<TokenSequences>(new TokenSequences(std::move(tokens), set, options));
}

uint64_t TokenSequences::batches() const {
  return static_cast<uint64_t>((set_.length - 1) / span());
}

int64_t TokenSequences::offset(uint64_t position, int64_t row) const {
  const auto batch = static_cast<int64_t>(position % batches());
  return set_.begin + row * set_.stride + batch * span();
}

void TokenSequences::fill(uint64_t position, std::span<void* const> buffers) const {
  auto* inputs = static_cast<int32_t*>(buffers[0]);
  auto* targets = static_cast<int32_t*>(buffers[1]);
  auto* resets = static_cast<uint8_t*>(buffers[2]);
  const bool first = position % batches() == 0;
  const int32_t end = tokens_->end_of_document();
  for (int64_t row = 0; row < set_.sequences; ++row) {
    const int64_t begin = offset(position, row);
    tokens_->copy(begin, span(), inputs);
    tokens_->copy(begin + 1, span(), targets);
    for (int64_t segment = 0; segment < options_.segments; ++segment) {
      const int32_t* const tokens = inputs + segment * options_.context;
      const bool ends = end >= 0 && std::find(tokens, tokens + options_.context, end) !=
                                        tokens + options_.context;
      *resets++ = (first && segment == 0) || ends ? 1 : 0;
    }
    inputs += span();
    targets += span();
  }
}

}  // namespace fullbore
