#include "fullbore/nn/image_layers.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/initializers.h"

namespace fullbore::nn {
namespace {

Tensor as(Tensor parameter, DType dtype, SourceLoc loc) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype, loc);
}

void require_axes(const char* layer, Tensor x, int axes, const char* layout, SourceLoc loc) {
  if (!x.valid()) throw UsageError(fmt::format("{}: x is an empty Tensor", layer), loc);
  if (x.rank() != axes + 2)
    throw UsageError(fmt::format("{}: needs x {}, got {}", layer, layout, x.type().text()), loc);
}

/// What both kinds of convolution declare: weight [first, second, *kernel] and bias [outputs].
struct ConvWeights {
  Tensor weight, bias;
};
ConvWeights declare(Trace& trace, Tensor x, int64_t first, int64_t second, int64_t outputs,
                    const std::vector<int64_t>& kernel, const std::optional<Initializer>& given,
                    bool bias, SourceLoc loc) {
  Shape shape{first, second};
  for (int64_t extent : kernel) shape = shape.inserted(shape.rank(), extent);
  // PyTorch counts the second axis for the transposed kind too.
  const int64_t fan_in = shape.elements() / std::max<int64_t>(1, first);
  ConvWeights made;
  made.weight = as(trace.parameter("weight", shape, given.value_or(kaiming_uniform(fan_in)), loc),
                   x.dtype(), loc);
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, fan_in)));
  if (bias)
    made.bias = as(trace.parameter("bias", {outputs}, Initializer::uniform(-bound, bound), loc),
                   x.dtype(), loc);
  return made;
}

void check_groups(const char* layer, Tensor x, int64_t outputs, int64_t groups, SourceLoc loc) {
  if (groups >= 1 && x.dim(1) % groups == 0 && outputs % groups == 0 && outputs >= 0) return;
  throw UsageError(
      fmt::format("{}: {} channels of x {} and {} outputs do not divide into {} groups", layer,
                  x.dim(1), x.type().text(), outputs, groups),
      loc);
}

Tensor conv(const char* layer, int axes, const char* layout, Trace& trace, const std::string& name,
            Tensor x, int64_t outputs, const ConvLayerOptions& options, SourceLoc loc) {
  require_axes(layer, x, axes, layout, loc);
  check_groups(layer, x, outputs, options.groups, loc);
  const std::vector<int64_t> kernel = each_axis(layer, options.kernel, "kernel", axes, 1, loc);
  const Scope scope(trace, name);
  const ConvWeights weights = declare(trace, x, outputs, x.dim(1) / options.groups, outputs, kernel,
                                      options.weight_initializer, options.bias, loc);
  return convolution(x, weights.weight, weights.bias,
                     {.stride = options.stride,
                      .padding = options.padding,
                      .dilation = options.dilation,
                      .groups = options.groups},
                     loc);
}

}  // namespace

Tensor conv1d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc) {
  return conv("conv1d", 1, "[N,C,S]", trace, name, x, outputs, options, loc);
}
Tensor conv2d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc) {
  return conv("conv2d", 2, "[N,C,H,W]", trace, name, x, outputs, options, loc);
}
Tensor conv3d(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const ConvLayerOptions& options, SourceLoc loc) {
  return conv("conv3d", 3, "[N,C,D,H,W]", trace, name, x, outputs, options, loc);
}

Tensor transposed_conv(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
                       const TransposedConvLayerOptions& options, SourceLoc loc) {
  constexpr const char* kLayer = "transposed_conv";
  if (!x.valid() || x.rank() < 3 || x.rank() > 5)
    throw UsageError(fmt::format("{}: needs x [N,C,*S] with one to three spatial axes, got {}",
                                 kLayer, x.valid() ? x.type().text() : "an empty Tensor"),
                     loc);
  check_groups(kLayer, x, outputs, options.groups, loc);
  const std::vector<int64_t> kernel =
      each_axis(kLayer, options.kernel, "kernel", x.rank() - 2, 1, loc);
  const Scope scope(trace, name);
  const ConvWeights weights = declare(trace, x, x.dim(1), outputs / options.groups, outputs, kernel,
                                      options.weight_initializer, options.bias, loc);
  return transposed_convolution(x, weights.weight, weights.bias,
                                {.stride = options.stride,
                                 .padding = options.padding,
                                 .output_padding = options.output_padding,
                                 .dilation = options.dilation,
                                 .groups = options.groups},
                                loc);
}

Tensor batch_norm(Trace& trace, const std::string& name, Tensor x, BatchNormOptions options,
                  SourceLoc loc) {
  if (!x.valid() || x.rank() < 2)
    throw UsageError(fmt::format("batch_norm: needs x [N,C,*S], got {}",
                                 x.valid() ? x.type().text() : "an empty Tensor"),
                     loc);
  const Shape channels{x.dim(1)};
  const Scope scope(trace, name);
  const Tensor gain = trace.parameter("weight", channels, Initializer::ones(), loc);
  const Tensor bias = trace.parameter("bias", channels, Initializer::zeros(), loc);
  const auto running = [&](const char* what, Initializer first) {
    return trace.state(trace.builder().scope() + "." + what, Role::control, {DType::f32, channels},
                       std::move(first), loc);
  };
  const Tensor mean = running("running_mean", Initializer::zeros());
  const Tensor variance = running("running_var", Initializer::ones());
  if (!trace.training()) return batch_norm_by(x, gain, bias, mean, variance, options.epsilon, loc);
  const int64_t elements = x.type().elements() / std::max<int64_t>(1, x.dim(1));
  if (elements < 2)
    throw UsageError(fmt::format("batch_norm: channels of x {} have one element each, and no "
                                 "variance to train by",
                                 x.type().text()),
                     loc);
  const BatchNormResult made = fullbore::batch_norm(x, gain, bias, options.epsilon, loc);
  const auto next = [&](Tensor before, Tensor now, double factor) {
    const Tensor seen = stop_gradient(cast(now, DType::f32, loc), loc);
    trace.update(before, add({mul({before, loc}, {1 - options.momentum, loc}), loc},
                             {mul({seen, loc}, {options.momentum * factor, loc}), loc}));
  };
  next(mean, made.mean, 1);
  next(variance, made.variance, static_cast<double>(elements) / static_cast<double>(elements - 1));
  return made.y;
}

Tensor group_norm(Trace& trace, const std::string& name, Tensor x, int64_t groups, double epsilon,
                  SourceLoc loc) {
  if (!x.valid() || x.rank() < 2)
    throw UsageError(fmt::format("group_norm: needs x [N,C,*S], got {}",
                                 x.valid() ? x.type().text() : "an empty Tensor"),
                     loc);
  const Scope scope(trace, name);
  const Tensor gain = trace.parameter("weight", {x.dim(1)}, Initializer::ones(), loc);
  const Tensor bias = trace.parameter("bias", {x.dim(1)}, Initializer::zeros(), loc);
  return fullbore::group_norm(x, groups, gain, bias, epsilon, loc);
}

}  // namespace fullbore::nn
