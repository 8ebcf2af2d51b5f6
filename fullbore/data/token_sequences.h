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
struct SequenceSet {
  std::string source;  ///< path of the text, for messages
  std::string part;    ///< "training" or "validation", for messages
  int64_t sequences = 1;
  int64_t begin = 0;   ///< of the first one
  int64_t stride = 0;  ///< from the beginning of one to that of the next
  int64_t length = 0;  ///< tokens of each
};

struct SequenceSplit {
  SequenceSet training;
  SequenceSet validation;
};

/// The range cut into equal sequences; what is left over at its end belongs to none.
SequenceSet sequences_of(const TokenRange& range, int64_t sequences);
/// The corpus cut into equal sequences; the last `validation_fraction` (in [0, 1)) of each validates, the rest of it,
/// rounded down, trains.
SequenceSplit split_sequences(int64_t tokens, int64_t sequences, double validation_fraction,
                              const std::string& source);

struct SequenceOptions {
  int64_t context = 1;   ///< T, tokens of a segment
  int64_t segments = 1;  ///< S, of each sequence in a batch
};

/// Batches for models that remember: row r of every batch belongs to sequence r, and each batch goes on where the one
/// before it ended. An epoch is as many whole batches as a sequence has; then all sequences begin again.
///
///   inputs   i32  [B, S T]
///   targets  i32  [B, S T]  the tokens one further on
///   resets   bool [B, S]    what was read before the segment is to be forgotten: in the first batch of an epoch,
///                           and where the segment holds the token that ends a document
///
/// A batch is a function of its position alone, so that a resumed run reads on at its place.
class TokenSequences : public BatchSource {
 public:
  /// Failure when a sequence is shorter than S T + 1 tokens: says how many it has and needs.
  static Result<std::unique_ptr<TokenSequences>> create(std::shared_ptr<const TokenCorpus> tokens,
                                                        const SequenceSet& set,
                                                        const SequenceOptions& options);
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  uint64_t batches() const;  ///< of an epoch
  /// Where row `row` of batch `position` begins in the corpus.
  int64_t offset(uint64_t position, int64_t row) const;

 private:
  TokenSequences(std::shared_ptr<const TokenCorpus> tokens, SequenceSet set,
                 SequenceOptions options);
  int64_t span() const { return options_.context * options_.segments; }

  std::shared_ptr<const TokenCorpus> tokens_;
  SequenceSet set_;
  SequenceOptions options_;
  std::vector<BatchField> fields_;
};

/// The tensors of such batches.
std::vector<BatchField> sequence_fields(int64_t sequences, const SequenceOptions& options);

}  // namespace fullbore
