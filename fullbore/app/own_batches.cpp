#include "fullbore/app/own_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/app/user_code.h"
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

/// Which axis is the batch, in each field that says nothing else.
void name_axis(std::vector<BatchField>& fields, int batch_axis) {
  const auto has_axis = [&](const BatchField& field) {
    return field.type.shape.rank() > batch_axis;
  };
  // A label for each sequence of a batch [time, batch, channels] is [batch]. An axis that no field has is a mistake,
  // which cut_axis() refuses.
  const bool mistaken = std::ranges::none_of(fields, has_axis);
  for (BatchField& field : fields)
    if (field.batch_axis == 0 && (has_axis(field) || mistaken)) field.batch_axis = batch_axis;
}

/// The fields as a run has them: of so many rows along the batch axis.
void settle(std::vector<BatchField>& fields, int batch_axis, int64_t rows) {
  name_axis(fields, batch_axis);
  for (BatchField& field : fields)
    if (const int axis = cut_axis(field); axis >= 0)
      field.type.shape = field.type.shape.with(axis, rows);
}

void check_fields(const std::vector<BatchField>& fields, SourceLoc loc) {
  if (fields.empty())
    throw UsageError("a batch has no fields: batches({{NAME, DTYPE, SHAPE}}, fill)", loc);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name.empty())
      throw UsageError(fmt::format("field {} of the batch has no name", i), loc);
    for (const int64_t extent : fields[i].type.shape.dims())
      if (extent < 0)
        throw UsageError(fmt::format("field '{}' of the batch is {}: an extent is negative",
                                     fields[i].name, fields[i].type.text()),
                         loc);
    for (size_t other = 0; other < i; ++other)
      if (fields[other].name == fields[i].name)
        throw UsageError(fmt::format("two fields of the batch are called '{}'", fields[i].name),
                         loc);
  }
}

bool are_alike(const std::vector<BatchField>& a, const std::vector<BatchField>& b) {
  return std::ranges::equal(a, b, [](const BatchField& of_a, const BatchField& of_b) {
    return of_a.name == of_b.name && of_a.type.dtype == of_b.type.dtype;
  });
}

/// "images f32, labels i32"
std::string names_and_dtypes(const std::vector<BatchField>& fields) {
  std::vector<std::string> texts;
  for (const BatchField& field : fields)
    texts.push_back(fmt::format("{} {}", field.name, dtype_name(field.type.dtype)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

class OwnSource : public BatchSource {
 public:
  OwnSource(const OwnBatches& batches, int batch_axis, const Config& config, uint64_t stream)
      : batches_(batches),
        config_(config),
        // Streams far apart, so that no seed of another run meets them.
        seed_(static_cast<uint64_t>(config.run.seed) ^ (stream * 0x9E3779B97F4A7C15U)) {
    check_described(batches);
    shapes_ = {batches.fields};
    shapes_.insert(shapes_.end(), batches.other_shapes.begin(), batches.other_shapes.end());
    for (std::vector<BatchField>& shape : shapes_)
      settle(shape, batch_axis, config.train.batch_size);
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
          fmt::format("batch {} has shape {}, and there are {}", position, shape, shapes_.size()),
          batches_.loc);
    return shape;
  }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    const auto failed = [&](const char* reason) {
      return DataError(
          fmt::format("batch {} of the model's data could not be filled: {}", position, reason));
    };
    run_user_code(
        [&] {
          batches_.fill(position,
                        BatchView(shapes_[shape_at(position)], buffers, config_, seed_, position));
        },
        failed);
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

OwnBatches batches(std::vector<BatchField> fields, FillBatch fill, SourceLoc loc) {
  return {.fields = std::move(fields), .fill = std::move(fill), .loc = loc};
}

void check_described(const OwnBatches& batches) {
  check_fields(batches.fields, batches.loc);
  if (!batches.fill)
    throw UsageError("nothing fills the batches: batches(fields, fill)", batches.loc);
  if (!batches.other_shapes.empty() && !batches.shape_at)
    throw UsageError("batches of several shapes need shape_at, which of them a batch has",
                     batches.loc);
  for (const std::vector<BatchField>& shape : batches.other_shapes) {
    check_fields(shape, batches.loc);
    if (!are_alike(shape, batches.fields))
      throw UsageError(
          fmt::format("the shapes of a batch have other fields: {} in one and {} in another; names "
                      "and dtypes must be the same",
                      names_and_dtypes(batches.fields), names_and_dtypes(shape)),
          batches.loc);
  }
}

void check_rows(const OwnBatches& batches, int batch_axis) {
  std::vector<std::vector<BatchField>> shapes = batches.other_shapes;
  shapes.insert(shapes.begin(), batches.fields);
  for (std::vector<BatchField>& fields : shapes) {
    name_axis(fields, batch_axis);
    const BatchField* first = nullptr;
    for (const BatchField& field : fields) {
      const int axis = cut_axis(field);
      if (axis < 0) continue;
      if (first == nullptr) first = &field;
      if (field.type.shape[axis] != first->type.shape[cut_axis(*first)])
        throw UsageError(
            fmt::format("the fields of a batch have different rows: {} along axis {} of '{}', and "
                        "{} along axis {} of '{}'. A field without rows says so, {{NAME, DTYPE, "
                        "SHAPE, -1}}; "
                        "where none has any, the model's .batch_axis is -1",
                        first->type.shape[cut_axis(*first)], cut_axis(*first), first->name,
                        field.type.shape[axis], axis, field.name),
            batches.loc);
    }
  }
}

void check_alike(const OwnBatches& batches, const OwnBatches& held_out) {
  if (are_alike(batches.fields, held_out.fields)) return;
  throw UsageError(fmt::format("what is held out has other fields than what is learned from: {} "
                               "and {}; names, dtypes and their order must be the same",
                               names_and_dtypes(held_out.fields), names_and_dtypes(batches.fields)),
                   held_out.loc);
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
