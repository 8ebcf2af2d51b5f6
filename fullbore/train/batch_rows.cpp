#include "fullbore/train/batch_rows.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore {

int cut_axis(const BatchField& field) {
  const int rank = field.type.shape.rank();
  if (rank == 0 || field.batch_axis < 0) return -1;
  if (field.batch_axis >= rank)
    throw UsageError(fmt::format("the batch is axis {} of '{}', which is {}", field.batch_axis,
                                 field.name, field.type.text()));
  return field.batch_axis;
}

int64_t batch_rows(const std::vector<BatchField>& fields) {
  for (const BatchField& field : fields)
    if (const int axis = cut_axis(field); axis >= 0) return field.type.shape[axis];
  return 1;
}

int64_t common_rows(const std::vector<BatchField>& fields) {
  const int64_t rows = batch_rows(fields);
  for (const BatchField& field : fields) {
    const int axis = cut_axis(field);
    if (axis < 0 ? field.type.shape.rank() > 0 : field.type.shape[axis] != rows) return 0;
  }
  return rows;
}

}  // namespace fullbore
