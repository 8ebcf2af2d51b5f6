#pragma once
#include <span>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// sqrt(sum over all tensors of the sum of squares), f32[]; not finite as soon as one element is not.
Tensor global_norm(std::span<const Tensor> tensors);

/// Gradient noise scale, f32[], in examples: tr(Sigma) / |G|^2, the batch size at which the noise of
/// the gradient is as large as the gradient, estimated from the gradients of the two halves of a
/// batch of `batch_size` examples and their mean (`whole`):
///
///   |G|^2 = 2 |g_whole|^2 - |g_half|^2        tr(Sigma) = batch (|g_half|^2 - |g_whole|^2)
///
/// with |g_half|^2 the mean of both halves. Each of the two is averaged over steps with decay 0.99
/// (State noise.squared_norm and noise.trace; the start from zero cancels in the ratio), for the
/// estimates of a single step may be far off, and |G|^2 negative. `keep` is told the new averages.
/// Source: McCandlish et al. 2018, arXiv:1812.06162, appendix A.1.
Tensor gradient_noise_scale(Trace& trace, std::span<const Tensor> first_half,
                            std::span<const Tensor> second_half, std::span<const Tensor> whole,
                            int64_t batch_size,
                            const std::function<void(Tensor state, Tensor next)>& keep);

}  // namespace fullbore
