#pragma once
#include <functional>

#include "fullbore/data/batch_source.h"
#include "fullbore/data/dataset.h"
#include "fullbore/data/token_corpus.h"

/// The datasets there are. Sources come first, then decorators: each takes a dataset and is one, e.g.
///
///   auto rows = pack_documents(corpus_documents(corpus, {0, corpus->size()}), {.length = 1024});
///   auto batches = batch_examples(shuffle_examples(rows, seed), 8);
///   Loader loader(std::make_shared<DatasetBatches>(batches), {.workers = 4});
///
/// None holds more than a table of its source's lengths; every access is O(1) or O(log n). Arguments
/// that cannot work throw UsageError, "mix: ...".
namespace fullbore {

// --- sources -------------------------------------------------------------------------------------
/// Examples made by a function of their index, which is called from several threads at once; for
/// randomness it should draw by Philox from (a seed, the index).
DatasetPtr generate_examples(std::vector<std::string> names, uint64_t size,
                             std::function<Example(uint64_t index)> make);
/// Each document of the corpus that lies in `span`, what lies outside of it cut off: "tokens" i32 [n].
DatasetPtr corpus_documents(std::shared_ptr<const TokenCorpus> corpus, TokenSpan span);

// --- decorators ----------------------------------------------------------------------------------
/// Each example changed by a function of it and its index, as in generate_examples().
DatasetPtr map_examples(DatasetPtr source, std::vector<std::string> names,
                        std::function<Example(Example example, uint64_t index)> change);

constexpr uint64_t kForever = ~uint64_t{0};
/// The source `epochs` times over, in its order.
DatasetPtr repeat_examples(DatasetPtr source, uint64_t epochs = kForever);
/// The same, in another order in each epoch: a keyed permutation (permutation.h), so that nothing is
/// held in memory and any position is as near as any other.
DatasetPtr shuffle_examples(DatasetPtr source, uint64_t seed, uint64_t epochs = kForever);

/// Examples of several endless sources with the same names, in proportion to the weights: exactly so
/// (to a 4096th, but at least one) in every 4096 in a row. Each source is read from its beginning,
/// nothing left out.
struct Weighted {
  DatasetPtr source;
  double weight = 1;
};
DatasetPtr mix_examples(std::vector<Weighted> sources, uint64_t seed);

struct PackOptions {
  int64_t length = 1;  ///< T, tokens of a row
  /// Rows are filled to the brim and documents cut where a row ends; else a document is cut only if it
  /// is longer than a row, and goes to the row that it fills best (best fit decreasing).
  bool cut_documents = true;
  int64_t multiple_of = 1;  ///< empty rows are added until there are a multiple of so many
};
/// Rows of several documents each, from a finite source of "tokens" i32 [n], for models that keep
/// documents apart: i32 [T] each,
///   inputs     tokens, 0 where the row is empty
///   targets    the token after each in the same document; -1, which cross_entropy() ignores, after the
///              last and where the row is empty: every token but each document's first is one once
///   segments   1, 2, ... by document, 0 where the row is empty: attention stays inside equal ones
///   positions  0, 1, ... from where the document begins in the row
DatasetPtr pack_documents(DatasetPtr source, const PackOptions& options);

/// Documents ("tokens" i32 [n], from a finite source) as what is to be predicted from what: "inputs"
/// and "targets" i32 [m], the tokens one further on. A longer document than `length` becomes several
/// examples of at most so many predictions each: every token but each document's first is a target
/// once. Documents of one token are left out.
DatasetPtr cut_documents(DatasetPtr source, int64_t length);

struct BucketOptions {
  std::vector<int64_t> lengths;  ///< L of each bucket, ascending
  int64_t token_budget = 0;      ///< a batch has B = token_budget / L rows
  uint64_t seed = 0;
  uint64_t epochs = kForever;
  std::vector<int32_t> padding = {};  ///< of each tensor; 0 where none is given
};
/// Batches of examples of like length, from a finite source whose tensors are i32 [n], equally long: an
/// example goes to the first bucket it fits in. In each epoch every example is in one batch, and
/// batches of all buckets come in random order. Every tensor of the source, i32 [B, L], and "lengths"
/// i32 [B], 0 in rows that the last batch of a bucket leaves empty.
DatasetPtr bucket_examples(DatasetPtr source, const BucketOptions& options);

/// `size` examples of one type stacked along a new first axis. What is left at the end of a finite
/// source is no batch.
DatasetPtr batch_examples(DatasetPtr source, int64_t size);

/// A dataset whose examples are batches of its shapes(), for the Loader. Of a finite one, position
/// batches() is 0 again.
class DatasetBatches : public BatchSource {
 public:
  explicit DatasetBatches(DatasetPtr dataset);
  const std::vector<BatchField>& fields() const override { return shapes_[largest_]; }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override;
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  uint64_t batches() const { return dataset_->size(); }  ///< or Dataset::kEndless

 private:
  uint64_t index(uint64_t position) const;
  /// DataError where the batch has a shape that shapes() does not tell of.
  size_t find_shape(uint64_t position, const std::vector<TensorType>& types) const;

  DatasetPtr dataset_;
  std::vector<std::vector<BatchField>> shapes_;
  size_t largest_ = 0;  ///< of them, by bytes
};

}  // namespace fullbore
