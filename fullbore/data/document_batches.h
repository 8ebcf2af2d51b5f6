#pragma once
#include <memory>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/data/datasets.h"
#include "fullbore/data/token_windows.h"

/// Batches of a text's documents for models that predict the next token. No document sees another;
/// every token but each document's first is a target once in an epoch, and all other targets are -1,
/// which cross_entropy() ignores. What a document is, the corpus knows: a file, or a line of JSON lines;
/// of one that lies partly in `range`, the part inside.
namespace fullbore {

/// How often the documents are gone through.
struct DocumentEpochs {
  uint64_t seed = 0;
  uint64_t count = kForever;
};

/// `inputs`, `targets`, `segments`, `positions` i32 [B, T] as pack_documents() makes them: documents
/// whole, but for those longer than T, which are cut into pieces of T, each a document of its own. In
/// another order in each epoch, the rows composed alike.
///
/// With finite epochs the last batch is filled up with empty rows.
/// Failure: no document of the range has the two tokens that one prediction needs.
Result<std::shared_ptr<const DatasetBatches>> packed_batches(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const WindowOptions& options, const DocumentEpochs& epochs);

struct DocumentBuckets {
  std::vector<int64_t> lengths;  ///< L of each, ascending
  int64_t tokens_per_batch = 0;  ///< at least the largest L
};
/// `inputs`, `targets` i32 [B, L] and `lengths` i32 [B] with B = tokens_per_batch / L, of documents of
/// like length: a document of n tokens makes n - 1 predictions and goes to the first bucket that holds
/// them; one with more than the largest L is cut into pieces of that, each a document of its own.
///
/// Failure: as of packed_batches(). UsageError: as of bucket_examples().
Result<std::shared_ptr<const DatasetBatches>> bucketed_batches(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const DocumentBuckets& options, const DocumentEpochs& epochs);

}  // namespace fullbore
