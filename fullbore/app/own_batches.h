#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/base/source_loc.h"
#include "fullbore/data/batch_source.h"
#include "fullbore/ir/tensor.h"
#include "fullbore/train/config.h"

/// The batches of a model of one's own (own_model.h): described by names, dtypes and shapes, filled by a function.
namespace fullbore {

using enum DType;  // f32, i32, ... in the descriptions of fields

/// One batch that is to be filled: its memory by the names of the fields. What is asked for by a wrong name or as
/// another dtype is a UsageError that names the line, the nearest name and the dtype.
class BatchView {
 public:
  BatchView(const std::vector<BatchField>& fields, std::span<void* const> buffers,
            const Config& config, uint64_t seed, uint64_t position)
      : fields_(&fields), buffers_(buffers), config_(&config), seed_(seed), position_(position) {}

  /// All elements of a field, row-major.
  std::span<float> f32(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  std::span<double> f64(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  std::span<int32_t> i32(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  std::span<int64_t> i64(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  std::span<uint8_t> u8(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  std::span<bool> boolean(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  const Shape& shape(std::string_view name, SourceLoc loc = SourceLoc::here()) const;
  /// Of the batch: train.batch_size, where the model has a batch axis.
  int64_t rows() const;
  /// Draws of this batch's own: they follow from run.seed, whether the batch is held out, and its position.
  PhiloxStream random() const { return PhiloxStream(seed_, position_); }
  /// The model's keys (OwnModel::keys).
  template <class Keys>
  const Keys& keys() const {
    return config_->get<Keys>();
  }

 private:
  size_t find(std::string_view name, SourceLoc loc) const;
  void* find(std::string_view name, DType dtype, SourceLoc loc) const;

  const std::vector<BatchField>* fields_;
  std::span<void* const> buffers_;
  const Config* config_;
  uint64_t seed_;
  uint64_t position_;
};

/// Fills batch `position`, always with the same bytes; called from several threads at once. The position says which
/// rows of a data set there are; what is drawn comes from batch.random().
using FillBatch = std::function<void(uint64_t position, BatchView batch)>;

struct OwnBatches {
  std::vector<BatchField> fields;
  FillBatch fill;
  /// Other shapes of batches, each with the same names and dtypes; which of them (fields: 0) a batch has.
  std::vector<std::vector<BatchField>> other_shapes = {};
  std::function<size_t(uint64_t position)> shape_at = {};
  SourceLoc loc = {};  ///< where they are described, for errors
};

/// batches({{"images", f32, {64, 32, 32, 3}}, {"labels", i32, {64}}}, fill)
OwnBatches batches(std::vector<BatchField> fields, FillBatch fill,
                   SourceLoc loc = SourceLoc::here());

/// UsageError that names the line of batches(): no fields, fields without a name or of one name, negative extents, other
/// shapes with other fields.
void check_described(const OwnBatches& batches);
/// UsageError: as written, the fields differ in the extent of the axis that is the batch.
void check_rows(const OwnBatches& batches, int batch_axis);
/// UsageError: names, dtypes or their order are others in what is held out, which the same loss reads.
void check_alike(const OwnBatches& batches, const OwnBatches& held_out);

/// Which tensor of a batch is meant: by its name, or by its place among the fields.
struct FieldName {
  FieldName(const char* field, SourceLoc l = SourceLoc::here()) : name(field), loc(l) {}  // NOLINT
  FieldName(const std::string& field, SourceLoc l = SourceLoc::here())                    // NOLINT
      : name(field), loc(l) {}
  template <std::integral Place>
  FieldName(Place index, SourceLoc l = SourceLoc::here())  // NOLINT
      : place(static_cast<int64_t>(index)), loc(l) {}
  std::string name;
  int64_t place = -1;
  SourceLoc loc;
};

/// The tensors of a batch as the loss gets them: batch["images"] or batch[0]. UsageError for what there is not. It can
/// be handed on as a span.
class BatchTensors {
 public:
  BatchTensors(const std::vector<BatchField>& fields, std::span<const Tensor> tensors,
               const Config& config)
      : fields_(&fields), tensors_(tensors), config_(&config) {}

  Tensor operator[](const FieldName& field) const;
  size_t size() const { return tensors_.size(); }
  operator std::span<const Tensor>() const { return tensors_; }  // NOLINT
  /// The model's keys (OwnModel::keys).
  template <class Keys>
  const Keys& keys() const {
    return config_->get<Keys>();
  }

 private:
  const std::vector<BatchField>* fields_;
  std::span<const Tensor> tensors_;
  const Config* config_;
};

/// The batches as a run reads them: of train.batch_size rows along `batch_axis` of each field that says nothing else;
/// -1: as they are described. `stream` tells batches apart that are trained on and held out. UsageError: what
/// check_described() refuses. What `fill` throws becomes a DataError that names the batch, but for errors of our own.
std::shared_ptr<const BatchSource> own_source(const OwnBatches& batches, int batch_axis,
                                              const Config& config, uint64_t stream);

}  // namespace fullbore
