#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ops/ops.h"

/// What gradients and decompositions are written with. They pass no locations: whoever asks for them
/// has set an Origin (ir/tensor.h), which every node gets.
namespace fullbore {

/// What norms, softmax, losses and sums are computed in: f64 for f64, f32 for all others.
inline DType compute_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// x itself if it has the dtype already, so that f32 models carry no idle casts.
inline Tensor as_dtype(Tensor x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }
/// x in the dtype that it is computed in.
inline Tensor widened(Tensor x) { return as_dtype(x, compute_dtype(x.dtype())); }

/// `shape` with extent 1 along each of the axes.
Shape with_unit_axes(Shape shape, const std::vector<int64_t>& axes);
/// `reduced`, from which `axes` (ascending) of `shape` were removed, repeated along them.
Tensor restore_axes(Tensor reduced, const Shape& shape, const std::vector<int64_t>& axes);

}  // namespace fullbore
