#pragma once
#include <tuple>

#include "fullbore/ops/ops.h"

/// Normalisation by channels: x [N,C,*S] with any number of spatial axes.
namespace fullbore {

/// Result of batch_norm: y of x's type, and the statistics of the batch [C], f32 (f64 for f64).
struct BatchNormResult {
  Tensor y;
  Tensor mean;
  Tensor variance;  ///< biased: the mean square of the deviations
};
/// (x - mean) / sqrt(variance + epsilon) * gain + bias, with mean and variance of each channel over batch and spatial axes.
///
/// x           [N,C,*S] floating
/// gain, bias  [C] of x's dtype, or f32
///
/// Composite; statistics are f32 or better. Gradient: through y and both statistics.
/// Errors:   UsageError if shapes or dtypes do not fit, or a channel has no elements.
/// Source:   Ioffe, Szegedy 2015, arXiv:1502.03167, algorithm 1.
/// Example:  auto [y, mean, variance] = batch_norm(x, gain, bias);
BatchNormResult batch_norm(Tensor x, Tensor gain, Tensor bias, double epsilon = 1e-5,
                           SourceLoc loc = SourceLoc::here());
/// The same with given statistics [C], as in evaluation.
Tensor batch_norm_by(Tensor x, Tensor gain, Tensor bias, Tensor mean, Tensor variance,
                     double epsilon = 1e-5, SourceLoc loc = SourceLoc::here());

/// As layer_norm over each of `groups` groups of neighbouring channels with all spatial axes, then times gain [C], plus
/// bias [C] (each optional). Wu, He 2018, arXiv:1803.08494.
Tensor group_norm(Tensor x, int64_t groups, Tensor gain = {}, Tensor bias = {},
                  double epsilon = 1e-5, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
