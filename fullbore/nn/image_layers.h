#pragma once
#include <optional>
#include <string>

#include "fullbore/ops/channel_norms.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/pooling.h"
#include "fullbore/trace/trace.h"

/// Layers over channels and one to three spatial axes, x [N,C,*S]: names, layouts and first values as PyTorch's, so that
/// weights go from one to the other.
namespace fullbore::nn {

struct ConvLayerOptions {
  PerAxis kernel;
  PerAxis stride = 1;
  PerAxis padding = 0;
  PerAxis dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  /// None: kaiming_uniform of a = sqrt(5), and of the bias uniform in +-1 / sqrt(fan_in).
  std::optional<Initializer> weight_initializer = {};
};
/// x [N,C,S] -> [N,outputs,P]; parameters `<name>.weight` [outputs,C/groups,K] and `<name>.bias` [outputs], both f32,
/// cast to x's dtype where they are used. See convolution().
Tensor conv1d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc = SourceLoc::here());
/// x [N,C,H,W]: `nn::conv2d(trace, "conv1", x, 32, {.kernel = 3, .padding = 1})`
Tensor conv2d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc = SourceLoc::here());
/// x [N,C,D,H,W]
Tensor conv3d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc = SourceLoc::here());

struct TransposedConvLayerOptions {
  PerAxis kernel;
  PerAxis stride = 1;
  PerAxis padding = 0;
  PerAxis output_padding = 0;
  PerAxis dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> weight_initializer = {};
};
/// Over as many axes as x has; parameters `<name>.weight` [C,outputs/groups,*K] and `<name>.bias`. See
/// transposed_convolution().
Tensor transposed_conv(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
                       const TransposedConvLayerOptions& options,
                       SourceLoc loc = SourceLoc::here());

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< share of the batch's statistics in the running ones
};
/// Parameters `<name>.weight` (ones) and `<name>.bias` (zeros) [C]; State `<name>.running_mean` (zeros) and
/// `<name>.running_var` (ones). A training trace normalises by the batch and updates the State, with the unbiased
/// variance; an evaluation normalises by the State. A training step that is skipped, for its loss or gradients are not
/// finite, leaves the State as it was. Once per trace and name: of the microbatches of a step, those one after another
/// have statistics of their own and update the State in turn, and none go side by side.
/// Errors: UsageError for one element per channel while training, which has no variance.
Tensor batch_norm(Trace& trace, const std::string& name, Tensor x, BatchNormOptions options = {},
                  SourceLoc loc = SourceLoc::here());

/// Parameters `<name>.weight` (ones) and `<name>.bias` (zeros) [C]. See fullbore::group_norm().
Tensor group_norm(Trace& trace, const std::string& name, Tensor x, int64_t groups,
                  double epsilon = 1e-5, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
