#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/data/batch_source.h"
#include "fullbore/data/token_corpus.h"
#include "fullbore/data/token_windows.h"

namespace fullbore {

/// As many stretches of a corpus as a batch has rows, each `stride` tokens behind the one before it; the tokens
/// in between are another purpose's.
struct TrackSet {
  std::string source;  ///< path of the text, for messages
  std::string part;    ///< "training" or "validation", for messages
  int64_t tracks = 1;
  int64_t begin = 0;   ///< of the first one
  int64_t stride = 0;  ///< from the beginning of one to that of the next
  int64_t length = 0;  ///< tokens of each
};

struct TrackSplit {
  TrackSet training;
  TrackSet validation;
};

/// The range cut into equal tracks; what is left over at its end belongs to none.
TrackSet tracks_of(const TokenRange& range, int64_t tracks);
/// The corpus cut into equal tracks; the last `validation_fraction` (in [0, 1)) of each validates, the rest of it,
/// rounded down, trains.
TrackSplit split_tracks(int64_t tokens, int64_t tracks, double validation_fraction,
                        const std::string& source);

struct TrackOptions {
  int64_t context = 1;   ///< T, tokens of a segment
  int64_t segments = 1;  ///< S, of each track in a batch
};

/// Batches for models that remember: row r of every batch belongs to track r, and each batch goes on where the one
/// before it ended. An epoch is as many whole batches as a track has; then all tracks begin again.
///
///   inputs   i32  [B, S T]
///   targets  i32  [B, S T]  the tokens one further on
///   resets   bool [B, S]    what was read before the segment is to be forgotten: in the first batch of an epoch,
///                           and where the segment holds the token that ends a document
///
/// A batch is a function of its position alone, so that a resumed run reads on at its place.
class TokenTracks : public BatchSource {
 public:
  /// Failure when a track is shorter than S T + 1 tokens: says how many it has and needs.
  static Result<std::unique_ptr<TokenTracks>> create(std::shared_ptr<const TokenCorpus> tokens,
                                                     const TrackSet& set,
                                                     const TrackOptions& options);
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  uint64_t batches() const;  ///< of an epoch
  /// Where row `row` of batch `position` begins in the corpus.
  int64_t offset(uint64_t position, int64_t row) const;

 private:
  TokenTracks(std::shared_ptr<const TokenCorpus> tokens, TrackSet set, TrackOptions options);
  int64_t span() const { return options_.context * options_.segments; }

  std::shared_ptr<const TokenCorpus> tokens_;
  TrackSet set_;
  TrackOptions options_;
  std::vector<BatchField> fields_;
};

/// The tensors of such batches.
std::vector<BatchField> track_fields(int64_t tracks, const TrackOptions& options);

}  // namespace fullbore
