#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/data/batch_source.h"

namespace fullbore {

/// Batches of one source after another, as a curriculum has them: those from position `first` on, up to the next
/// stage's, come from a source of their own, from its batch `begin` on. A batch is a function of its position, as
/// those of the sources are. Fields have the same names and dtypes in all of them.
class StagedBatches : public BatchSource {
 public:
  struct Stage {
    uint64_t first = 0;
    uint64_t begin = 0;
    std::shared_ptr<const BatchSource> source;
  };
  /// At least one; the first begins at 0, the others ascend. A boolean field `resets`, if there is one, is set all
  /// over in the first batch of every stage: what was remembered is of another place of the text.
  explicit StagedBatches(std::vector<Stage> stages);

  /// Of the last stage, which lasts.
  const std::vector<BatchField>& fields() const override { return stages_.back().source->fields(); }
  /// That of the last stage first; each once.
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override { return shape_of_[stage_at(position)]; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;

 private:
  size_t stage_at(uint64_t position) const;

  std::vector<Stage> stages_;
  std::vector<std::vector<BatchField>> shapes_;
  std::vector<size_t> shape_of_;  ///< of each stage
};

}  // namespace fullbore
