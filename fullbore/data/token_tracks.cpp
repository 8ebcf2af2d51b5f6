#include "fullbore/data/token_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

TrackSet tracks_of(const TokenRange& range, int64_t tracks) {
  FB_CHECK(tracks >= 1, "{} tracks", tracks);
  const int64_t length = range.size() / tracks;
  return {range.source, range.part, tracks, range.begin, length, length};
}

TrackSplit split_tracks(int64_t tokens, int64_t tracks, double validation_fraction,
                        const std::string& source) {
  const TrackSet all = tracks_of({source, "training", 0, tokens}, tracks);
  const TokenSplit track = split_tokens(all.length, validation_fraction, source);
  TrackSplit split{all, all};
  split.training.length = track.training.size();
  split.validation.part = "validation";
  split.validation.begin = track.validation.begin;
  split.validation.length = track.validation.size();
  return split;
}

std::vector<BatchField> track_fields(int64_t tracks, const TrackOptions& options) {
  const TensorType tokens{DType::i32, {tracks, options.context * options.segments}};
  return {{"inputs", tokens},
          {"targets", tokens},
          {"resets", {DType::boolean, {tracks, options.segments}}}};
}

TokenTracks::TokenTracks(std::shared_ptr<const TokenCorpus> tokens, TrackSet set,
                         TrackOptions options)
    : tokens_(std::move(tokens)),
      set_(std::move(set)),
      options_(options),
      fields_(track_fields(set_.tracks, options)) {}

Result<std::unique_ptr<TokenTracks>> TokenTracks::create(std::shared_ptr<const TokenCorpus> tokens,
                                                         const TrackSet& set,
                                                         const TrackOptions& options) {
  FB_CHECK(options.context >= 1 && options.segments >= 1, "{} segments of {} tokens",
           options.segments, options.context);
  FB_CHECK(set.tracks >= 1 && set.begin >= 0 && set.length <= set.stride &&
               set.begin + (set.tracks - 1) * set.stride + set.length <= tokens->size(),
           "{} tracks of {} tokens, {} apart, from {} on, of {}", set.tracks, set.length,
           set.stride, set.begin, tokens->size());
  const int64_t needed = options.context * options.segments + 1;
  if (set.length < needed)
    return Failure{fmt::format(
        "{}: too short: the {} part of each of {} tracks has {} tokens, and a batch needs {} of "
        "each. Take a longer text, a smaller train.batch_size or a smaller model.context",
        set.source, set.part, set.tracks, set.length, needed)};
  return std::unique_ptr<TokenTracks>(new TokenTracks(std::move(tokens), set, options));
}

uint64_t TokenTracks::batches() const { return static_cast<uint64_t>((set_.length - 1) / span()); }

int64_t TokenTracks::offset(uint64_t position, int64_t row) const {
  const auto batch = static_cast<int64_t>(position % batches());
  return set_.begin + row * set_.stride + batch * span();
}

void TokenTracks::fill(uint64_t position, std::span<void* const> buffers) const {
  auto* inputs = static_cast<int32_t*>(buffers[0]);
  auto* targets = static_cast<int32_t*>(buffers[1]);
  auto* resets = static_cast<uint8_t*>(buffers[2]);
  const bool first = position % batches() == 0;
  const int32_t end = tokens_->end_of_document();
  for (int64_t row = 0; row < set_.tracks; ++row) {
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
