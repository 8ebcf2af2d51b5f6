#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/shape.h"

namespace fullbore {

/// One tensor of a batch.
struct BatchField {
  std::string name;
  TensorType type;
  int batch_axis = 0;  ///< along which its rows are, and a batch is cut in parts
};

/// Where batches come from. A batch is a pure function of its position: whoever fills it, whenever,
/// in whatever order, fills it with the same bytes. That is what makes a run resumable at any
/// position in no time, and independent of the number of workers.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The tensors of a batch; of the largest, where batches differ in shape.
  virtual const std::vector<BatchField>& fields() const = 0;
  /// All shapes that batches come in, fields() among them, with the same names and dtypes: a step is
  /// compiled for each.
  virtual std::vector<std::vector<BatchField>> shapes() const { return {fields()}; }
  /// Which of shapes() batch `position` has.
  virtual size_t shape_at(uint64_t /*position*/) const { return 0; }
  /// Writes batch `position` to one buffer per field. Called from several threads at once; what it
  /// throws reaches whoever asks for the batch.
  virtual void fill(uint64_t position, std::span<void* const> buffers) const = 0;
};

}  // namespace fullbore
