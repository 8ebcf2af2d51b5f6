#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "workloads/chess/chess_data.h"

namespace fullbore::chess {

struct RecordBatchOptions {
  int64_t rows = 16;
  std::vector<int64_t> lengths;  ///< tokens of a batch's rows, ascending: the least that holds them
  bool prompt_loss = false;      ///< targets in prompts too
  uint64_t seed = 1;
  bool shuffled =
      true;  ///< false: in the records' order, the last batch filled up with rows that have no targets
};

/// Batches of records: `inputs` and `targets` i32 [rows, length], the target of a token being the next one, -1 where none
/// is learned. In each epoch, shuffled, stretches of records are sorted by length, so that a batch's rows are alike.
class RecordBatches : public BatchSource {
 public:
  RecordBatches(std::shared_ptr<const ChessData> data, const ChessExamples& examples,
                RecordBatchOptions options);

  static std::vector<std::vector<BatchField>> shapes_of(int64_t rows,
                                                        std::span<const int64_t> lengths);
  const std::vector<BatchField>& fields() const override { return shapes_.back(); }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override;
  void fill(uint64_t position, std::span<void* const> buffers) const override;

  /// Of all records, in an epoch.
  uint64_t batches() const;

 private:
  struct Epoch {
    uint64_t number = 0;
    std::vector<uint32_t> order;    ///< records, batch after batch
    std::vector<uint32_t> batches;  ///< which batch comes when
  };
  std::shared_ptr<const Epoch> epoch(uint64_t number) const;
  std::vector<uint32_t> rows_at(uint64_t position) const;
  int64_t length(uint32_t record) const;

  std::shared_ptr<const ChessData> data_;  ///< that the examples are of
  const ChessExamples& examples_;
  RecordBatchOptions options_;
  std::vector<std::vector<BatchField>> shapes_;
  mutable std::mutex mutex_;  ///< of the one below
  mutable std::shared_ptr<const Epoch> epoch_;
};

}  // namespace fullbore::chess
