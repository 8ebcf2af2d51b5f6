#include "fullbore/app/own_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/train/batch_rows.h"

namespace fullbore {
namespace {

std::vector<std::string> names_of(const std::vector<BatchField>& fields) {
  std::vector<std::string> names;
  for (const BatchField& field : fields) names.push_back(field.name);
  return names;
}

size_t place_of(const std::vector<BatchField>& fields, std::string_view name, SourceLoc loc) {
  const auto found = std::ranges::find(fields, name, &BatchField::name);
  if (found == fields.end()) {
    const std::vector<std::string> names = names_of(fields);
    throw UsageError(fmt::format("the batch has no field '{}'.{} It has {}", name,
                                 did_you_mean(name, names), fmt::join(names, ", ")),
                     loc);
  }
  return static_cast<size_t>(found - fields.begin());
}

/// The fields as a run has them: of so many rows along the batch axis.
void settle(std::vector<BatchField>& fields, int batch_axis, int64_t rows) {
  const auto has_axis = [&](const BatchField& field) {
    return field.type.shape.rank() > batch_axis;
  };
  // A label for each sequence of a batch [time, batch, channels] is [batch]. An axis that no field has is a mistake,
  // which cut_axis() refuses.
  const bool mistaken = std::ranges::none_of(fields, has_axis);
  for (BatchField& field : fields) {
    if (field.batch_axis == 0 && (has_axis(field) || mistaken)) field.batch_axis = batch_axis;
    const int axis = cut_axis(field);
    if (axis >= 0) field.type.shape = field.type.shape.with(axis, rows);
  }
}

void require_distinct(const std::vector<BatchField>& fields) {
  if (fields.empty()) throw UsageError("a batch has no fields: batches({{NAME, DTYPE, SHAPE}})");
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name.empty())
      throw UsageError(fmt::format("field {} of the batch has no name", i));
    for (size_t other = 0; other < i; ++other)
      if (fields[other].name == fields[i].name)
        throw UsageError(fmt::format("two fields of the batch are called '{}'", fields[i].name));
  }
}

void require_alike(const std::vector<BatchField>& shape, const std::vector<BatchField>& first) {
  const bool alike = std::ranges::equal(shape, first, [](const BatchField& a, const BatchField& b) {
    return a.name == b.name && a.type.dtype == b.type.dtype;
  });
  if (!alike)
    throw UsageError(fmt::format(
        "the shapes of a batch have other fields: {} in one and {} in another; names and dtypes "
        "must be the same",
        fmt::join(names_of(first), ", "), fmt::join(names_of(shape), ", ")));
}

class OwnSource : public BatchSource {
 public:
  OwnSource(const OwnBatches& batches, int batch_axis, const Config& config, uint64_t stream)
      : batches_(batches),
        config_(config),
        // Streams far apart, so that no seed of another run meets them.
        seed_(static_cast<uint64_t>(config.run.seed) ^ (stream * 0x9E3779B97F4A7C15U)) {
    require_distinct(batches.fields);
    if (!batches.fill) throw UsageError("nothing fills the batches: batches(fields, fill)");
    shapes_ = {batches.fields};
    shapes_.insert(shapes_.end(), batches.other_shapes.begin(), batches.other_shapes.end());
    if (shapes_.size() > 1 && !batches.shape_at)
      throw UsageError("batches of several shapes need shape_at, which of them a batch has");
    for (std::vector<BatchField>& shape : shapes_) {
      require_alike(shape, batches.fields);
      settle(shape, batch_axis, config.train.batch_size);
    }
    // The trainer takes the first shape for the largest one.
    const auto bytes = [](const std::vector<BatchField>& shape) {
      int64_t sum = 0;
      for (const BatchField& field : shape) sum += field.type.bytes();
      return sum;
    };
    largest_ = *std::ranges::max_element(shapes_, {}, bytes);
  }

  const std::vector<BatchField>& fields() const override { return largest_; }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override {
    const size_t shape = batches_.shape_at ? batches_.shape_at(position) : 0;
    if (shape >= shapes_.size())
      throw UsageError(
          fmt::format("batch {} has shape {}, and there are {}", position, shape, shapes_.size()));
    return shape;
  }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    batches_.fill(position,
                  BatchView(shapes_[shape_at(position)], buffers, config_, seed_, position));
  }

 private:
  OwnBatches batches_;
  Config config_;
  uint64_t seed_;
  std::vector<std::vector<BatchField>> shapes_;
  std::vector<BatchField> largest_;
};

template <class T>
std::span<T> elements_at(void* data, const TensorType& type) {
  return {static_cast<T*>(data), static_cast<size_t>(type.elements())};
}

}  // namespace

size_t BatchView::find(std::string_view name, SourceLoc loc) const {
  return place_of(*fields_, name, loc);
}

void* BatchView::find(std::string_view name, DType dtype, SourceLoc loc) const {
  const size_t place = find(name, loc);
  const TensorType& type = (*fields_)[place].type;
  if (type.dtype != dtype)
    throw UsageError(
        fmt::format("field '{}' of the batch is {}, and was asked for as {}: call {}()", name,
                    type.text(), dtype_name(dtype),
                    type.dtype == DType::boolean ? "boolean" : dtype_name(type.dtype)),
        loc);
  return buffers_[place];
}

const Shape& BatchView::shape(std::string_view name, SourceLoc loc) const {
  return (*fields_)[find(name, loc)].type.shape;
}

std::span<float> BatchView::f32(std::string_view name, SourceLoc loc) const {
  return elements_at<float>(find(name, DType::f32, loc), (*fields_)[find(name, loc)].type);
}
std::span<double> BatchView::f64(std::string_view name, SourceLoc loc) const {
  return elements_at<double>(find(name, DType::f64, loc), (*fields_)[find(name, loc)].type);
}
std::span<int32_t> BatchView::i32(std::string_view name, SourceLoc loc) const {
  return elements_at<int32_t>(find(name, DType::i32, loc), (*fields_)[find(name, loc)].type);
}
std::span<int64_t> BatchView::i64(std::string_view name, SourceLoc loc) const {
  return elements_at<int64_t>(find(name, DType::i64, loc), (*fields_)[find(name, loc)].type);
}
std::span<uint8_t> BatchView::u8(std::string_view name, SourceLoc loc) const {
  return elements_at<uint8_t>(find(name, DType::u8, loc), (*fields_)[find(name, loc)].type);
}
std::span<bool> BatchView::boolean(std::string_view name, SourceLoc loc) const {
  return elements_at<bool>(find(name, DType::boolean, loc), (*fields_)[find(name, loc)].type);
}

int64_t BatchView::rows() const { return batch_rows(*fields_); }

OwnBatches batches(std::vector<BatchField> fields, FillBatch fill) {
  return {.fields = std::move(fields), .fill = std::move(fill)};
}

Tensor BatchTensors::operator[](const FieldName& field) const {
  if (field.name.empty() && field.place >= 0) {
    if (field.place < static_cast<int64_t>(tensors_.size()))
      return tensors_[static_cast<size_t>(field.place)];
    throw UsageError(fmt::format("the batch has {} fields, and number {} was asked for: {}",
                                 tensors_.size(), field.place, fmt::join(names_of(*fields_), ", ")),
                     field.loc);
  }
  return tensors_[place_of(*fields_, field.name, field.loc)];
}

std::shared_ptr<const BatchSource> own_source(const OwnBatches& batches, int batch_axis,
                                              const Config& config, uint64_t stream) {
  return std::make_shared<const OwnSource>(batches, batch_axis, config, stream);
}

}  // namespace fullbore
