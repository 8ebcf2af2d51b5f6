#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/data/batch_source.h"

namespace fullbore {

/// The axis of a field along which a batch is cut; -1: all of the field belongs to every part, as scalars do.
/// UsageError: it has no such axis.
int cut_axis(const BatchField& field);
/// Rows of a batch: the extent along the axis of the first field that has one; 1 where there is none.
int64_t batch_rows(const std::vector<BatchField>& fields);
/// The same, where all fields agree on it; 0: they do not, or one of them is of every part.
int64_t common_rows(const std::vector<BatchField>& fields);

}  // namespace fullbore
