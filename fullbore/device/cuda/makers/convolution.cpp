#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/convolution_geometry.h"

namespace fullbore::cuda {
namespace {

// As kernels/convolution.cpp declares them.
struct Axis {
  int32_t input = 1, kernel = 1, output = 1, stride = 1, before = 0, dilation = 1,
          input_dilation = 1;
};
struct Geometry {
  int32_t batch, inputs, outputs, groups;
  std::array<Axis, 3> axes;
};

constexpr uint32_t kThreads = 128;
constexpr int64_t kMostBlocks = 1 << 20;

int32_t narrow(int64_t number) { return static_cast<int32_t>(number); }

/// Axes that an image does not have come first, and have one element.
Geometry geometry_of(const ConvGeometry& g) {
  Geometry result{narrow(g.batch), narrow(g.inputs), narrow(g.outputs), narrow(g.groups), {}};
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const ConvAxis& axis = g.axes[i];
    result.axes[3 - g.axes.size() + i] = {
        narrow(axis.input),  narrow(axis.kernel),   narrow(axis.output),        narrow(axis.stride),
        narrow(axis.before), narrow(axis.dilation), narrow(axis.input_dilation)};
  }
  return result;
}

/// Do all numbers that the kernel computes with stay below 2^31?
bool fits(const ConvGeometry& g) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto reach = [](const ConvAxis& axis) {
    return std::max({axis.output * axis.stride + axis.kernel * axis.dilation, std::abs(axis.before),
                     axis.input * axis.input_dilation});
  };
  for (const ConvAxis& axis : g.axes)
    if (reach(axis) >= kMost) return false;
  return std::max({g.batch, g.inputs, g.input_elements(), g.output_elements(),
                   g.kernel_elements()}) < kMost &&
         g.outputs <= UINT16_MAX;
}

std::unique_ptr<CudaKernel> made(const Request& request, const ConvGeometry& g, Launch launch) {
  std::vector<Launch> launches;
  launches.push_back(std::move(launch));
  constexpr double kShareOfPeak =
      1.0 / 64;  // one product at a time, most of whose operands come from caches
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{
          .text = description_of(request),
          .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                                  flop_nanoseconds(request.card, g.flops() / kShareOfPeak))});
}

std::string too_large(const Request& request) {
  return fmt::format("{} is too large", description_of(request));
}

}  // namespace

std::unique_ptr<CudaKernel> make_convolution(const Request& request, std::string* why_not) {
  const DType dtype = request.input(0).dtype;
  const ConvGeometry g = ConvGeometry::of_convolution(
      request.input(0).shape, request.input(1).shape, request.node.attributes);
  if (!fits(g)) return *why_not = too_large(request), nullptr;
  const Extent grid{.x = static_cast<uint32_t>(divide_up(g.output_elements(), kThreads)),
                    .y = static_cast<uint32_t>(g.outputs),
                    .z = static_cast<uint32_t>(std::min<int64_t>(g.batch, UINT16_MAX))};
  return made(
      request, g,
      launch("convolution", fmt::format("convolution_{}", dtype_name(dtype)), grid, {.x = kThreads},
             {operand(0), operand(1), operand(2), value(geometry_of(g)),
              value(int32_t{request.output(0).dtype != dtype})}));
}

std::unique_ptr<CudaKernel> make_convolution_weight_gradient(const Request& request,
                                                             std::string* why_not) {
  const DType dtype = request.input(0).dtype;
  const ConvGeometry g = ConvGeometry::of_weight_gradient(
      request.input(0).shape, request.input(1).shape, request.node.attributes);
  if (!fits(g)) return *why_not = too_large(request), nullptr;
  const auto parts = request.node.attributes.get<int64_t>("parts");
  const auto blocks = static_cast<uint32_t>(
      std::clamp<int64_t>(divide_up(request.output(0).elements(), kThreads / 32), 1, kMostBlocks));
  return made(
      request, g,
      launch("convolution", fmt::format("convolution_weight_gradient_{}", dtype_name(dtype)),
             {.x = blocks}, {.x = kThreads},
             {operand(0), operand(1), operand(2), value(geometry_of(g)), value(narrow(parts)),
              value(narrow(divide_up(g.batch, parts))),
              value(int32_t{request.output(0).dtype != dtype})}));
}

}  // namespace fullbore::cuda
