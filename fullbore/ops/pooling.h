#pragma once
#include <tuple>

#include "fullbore/ops/ops.h"
#include "fullbore/ops/per_axis.h"

/// Windows over the spatial axes of x [N,C,*S], one to three of them, and resampling of them.
namespace fullbore {

struct PoolOptions {
  PerAxis kernel;
  PerAxis stride = {};   ///< none: the kernel, windows side by side
  PerAxis padding = 0;   ///< on both sides; at most half of the kernel
  PerAxis dilation = 1;  ///< of max_pool alone
};
/// The largest element of each window; padding is never the largest.
///
/// x       [N,C,*S] floating
/// -> y    [N,C,*P], P = (S + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down
///
/// Composite. Gradient: dy goes to the element that was the largest, of equal ones the first; NaN counts as the largest.
/// Errors:   UsageError if a window is larger than the padded input, or padding more than half of the kernel.
/// Cost:     a comparison for each element of each window.
/// Example:  auto y = max_pool(x, {.kernel = 2});
Tensor max_pool(Tensor x, const PoolOptions& options, SourceLoc loc = SourceLoc::here());
/// And where those elements are: i32 [N,C,*P], flat over *S.
std::tuple<Tensor, Tensor> max_pool_with_indices(Tensor x, const PoolOptions& options,
                                                 SourceLoc loc = SourceLoc::here());

struct AveragePoolOptions {
  PerAxis kernel;
  PerAxis stride = {};
  PerAxis padding = 0;
  bool count_padding = true;  ///< divides by all of the window, or by what of it lies within x
};
/// The mean of each window, zeros for padding; shapes and errors as of max_pool(). Sums are f32 or better.
Tensor average_pool(Tensor x, const AveragePoolOptions& options, SourceLoc loc = SourceLoc::here());

/// Mean or maximum of windows that cut each axis S into `output` parts as equal as they can be: part i is
/// [floor(i S / output), ceil((i + 1) S / output)). x [N,C,*S] -> [N,C,*output]. Equal maxima share the cotangent.
Tensor adaptive_average_pool(Tensor x, const PerAxis& output, SourceLoc loc = SourceLoc::here());
Tensor adaptive_max_pool(Tensor x, const PerAxis& output, SourceLoc loc = SourceLoc::here());

/// x [N,C,*S] -> [N,C,*extents]: element i of an axis is floor(i S / extent) of x.
Tensor upsample_nearest(Tensor x, const PerAxis& extents, SourceLoc loc = SourceLoc::here());
/// Linear interpolation along each axis (bilinear, trilinear). Element i lies at (i + 1/2) S / extent - 1/2 of x, within
/// its ends; with `align_corners` at i (S - 1) / (extent - 1).
/// Cost: a matmul [.., S] [S, extent] for each axis.
Tensor upsample_linear(Tensor x, const PerAxis& extents, bool align_corners = false,
                       SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
