#pragma once
#include <cstddef>
#include <span>

#include "fullbore/base/dtype.h"
#include "fullbore/ir/graph.h"

namespace fullbore {

/// The graph with its parameters of rank >= 2 stored in bf16 alone: they are cast to f32 where they enter, and their new
/// values to bf16 where they leave, which is exact for those that optimize() has rounded (StorageOptions). Vectors stay
/// f32: they are a thousandth of all, and no matmul reads them. Other State and frozen parameters are as they were.
Graph with_bf16_weights(const Graph& graph);

/// A tensor's values in another floating dtype, of as many elements.
void convert_elements(std::span<const std::byte> from, DType from_dtype, std::span<std::byte> to,
                      DType to_dtype);

/// May a stored weight fill one of that type: the same, or f32 and bf16 of one shape?
bool is_convertible_weight(const TensorType& stored, const TensorType& wanted);

}  // namespace fullbore
