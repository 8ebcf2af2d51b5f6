#pragma once
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"

/// What the reductions share.
namespace fullbore {

/// Numeric x; attribute `axes`: at least one, ascending, distinct, counted from the front. They are
/// removed from the result, which has x's dtype.
std::vector<TensorType> infer_reduction(const OpCall& call);
/// One operation per element of x that is floating.
Cost reduction_cost(const CostCall& call);
/// Strides of the result laid along x's axes, 0 along those that are removed.
std::vector<int64_t> reduced_strides(const Shape& shape, const std::vector<int64_t>& axes);

/// Emits the op; no axes at all leave x as it is.
Tensor apply_reduction(std::string_view op, Tensor x, std::vector<int64_t> axes, bool keep_dims,
                       SourceLoc loc);

/// `fill` in shapes and along axes that kernels are likely to get wrong.
std::vector<Sample> reduction_samples(const SampleInput& fill, bool of_nothing);
std::vector<ErrorSample> reduction_errors();

}  // namespace fullbore
