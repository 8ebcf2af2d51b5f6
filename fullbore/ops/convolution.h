#pragma once
#include "fullbore/ir/op_handle.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/per_axis.h"

/// Convolutions over one to three axes, in PyTorch's layouts: x [N,C,*S], weight [O,C/groups,*K].
namespace fullbore {

namespace op {
inline const OpHandle convolution{"convolution"};
inline const OpHandle convolution_weight_gradient{"convolution_weight_gradient"};
}  // namespace op

struct ConvOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< zeros on both sides
  PerAxis dilation = 1;
  int64_t groups = 1;
};
/// y[n,o,p] = bias[o] + sum over c, k of weight[o,c,k] * x[n, c, p * stride - padding + k * dilation].
///
/// x       [N,C,*S]          one to three spatial axes *S
/// weight  [O,C/groups,*K]   of x's dtype; output channels of group g read its input channels alone
/// bias    [O] or none
/// -> y    [N,O,*P]          P = (S + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down
///
/// Sums are kept in f32 (f64 for f64). Gradient: dx is a convolution of dy with the weights turned round, dweight a
/// `convolution_weight_gradient`; both have the same bits on any number of threads.
/// Errors:   UsageError if ranks, channels or dtypes do not fit, or the kernel is larger than the padded input.
/// Cost:     2 N O P K C/groups flops; three times that with both gradients.
/// Example:  auto y = convolution(images, weight, bias, {.stride = 2, .padding = 1});
Tensor convolution(Tensor x, Tensor weight, Tensor bias = {}, const ConvOptions& options = {},
                   SourceLoc loc = SourceLoc::here());

struct TransposedConvOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;         ///< crops both sides
  PerAxis output_padding = 0;  ///< more at the end; less than stride or dilation
  PerAxis dilation = 1;
  int64_t groups = 1;
};
/// The gradient in x of a convolution with these options, as a layer of its own (fractionally strided convolution).
///
/// x       [N,C,*S]
/// weight  [C,O/groups,*K]   of x's dtype
/// bias    [O] or none
/// -> y    [N,O,*P]          P = (S - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1
///
/// Errors and cost as of convolution().
Tensor transposed_convolution(Tensor x, Tensor weight, Tensor bias = {},
                              const TransposedConvOptions& options = {},
                              SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
