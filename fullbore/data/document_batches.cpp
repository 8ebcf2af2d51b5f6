#include "fullbore/data/document_batches.h"

#include <fmt/format.h>

#include <utility>

namespace fullbore {
namespace {

Failure no_predictions(const TokenRange& range) {
  return Failure{fmt::format(
      "{}: no document of its {} part has two tokens, and one prediction needs them. Take another "
      "text or data.validation_fraction",
      range.source, range.part)};
}

bool has_predictions(const Dataset& documents) {
  for (uint64_t i = 0; i < documents.size(); ++i)
    if (documents.types(i)[0].elements() >= 2) return true;
  return false;
}

}  // namespace

Result<std::shared_ptr<const DatasetBatches>> packed_batches(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const WindowOptions& options, const DocumentEpochs& epochs) {
  const DatasetPtr documents = corpus_documents(std::move(tokens), {range.begin, range.end});
  if (!has_predictions(*documents)) return no_predictions(range);
  const bool endless = epochs.count == kForever;
  const DatasetPtr rows =
      pack_documents(documents, {.length = options.context,
                                 .cut_documents = false,
                                 .multiple_of = endless ? 1 : options.batch_size});
  return std::make_shared<const DatasetBatches>(
      batch_examples(shuffle_examples(rows, epochs.seed, epochs.count), options.batch_size));
}

Result<std::shared_ptr<const DatasetBatches>> bucketed_batches(
    std::shared_ptr<const TokenCorpus> tokens, const TokenRange& range,
    const DocumentBuckets& options, const DocumentEpochs& epochs) {
  const DatasetPtr documents = corpus_documents(std::move(tokens), {range.begin, range.end});
  const DatasetPtr pieces =
      cut_documents(documents, options.lengths.at(options.lengths.size() - 1));
  if (pieces->size() == 0) return no_predictions(range);
  return std::make_shared<const DatasetBatches>(
      bucket_examples(pieces, {.lengths = options.lengths,
                               .token_budget = options.tokens_per_batch,
                               .seed = epochs.seed,
                               .epochs = epochs.count,
                               .padding = {0, -1}}));
}

}  // namespace fullbore
