#include "fullbore/ops/convolution_geometry.h"

#include <numeric>

#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

int64_t product(const std::vector<ConvAxis>& axes, int64_t ConvAxis::*extent) {
  int64_t result = 1;
  for (const ConvAxis& axis : axes) result *= axis.*extent;
  return result;
}

std::vector<ConvAxis> axes_of(const Attributes& attributes, int rank) {
  std::vector<ConvAxis> axes(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].stride = attributes.get<std::vector<int64_t>>("stride")[i];
    axes[i].before = attributes.get<std::vector<int64_t>>("before")[i];
    axes[i].dilation = attributes.get<std::vector<int64_t>>("dilation")[i];
  }
  return axes;
}

}  // namespace

int64_t ConvGeometry::kernel_elements() const { return product(axes, &ConvAxis::kernel); }
int64_t ConvGeometry::input_elements() const { return product(axes, &ConvAxis::input); }
int64_t ConvGeometry::output_elements() const { return product(axes, &ConvAxis::output); }

double ConvGeometry::flops() const {
  double flops = 2 * static_cast<double>(batch * outputs * output_elements()) *
                 static_cast<double>(kernel_elements() * group_inputs());
  for (const ConvAxis& axis : axes) flops /= static_cast<double>(axis.input_dilation);
  return flops;
}

ConvGeometry ConvGeometry::of_convolution(const Shape& x, const Shape& weight,
                                          const Attributes& attributes) {
  const int rank = x.rank() - 2;
  ConvGeometry g{.batch = x[0],
                 .inputs = x[1],
                 .outputs = weight[0],
                 .groups = attributes.get<int64_t>("groups"),
                 .axes = axes_of(attributes, rank)};
  for (int i = 0; i < rank; ++i) {
    ConvAxis& axis = g.axes[static_cast<size_t>(i)];
    axis.input = x[i + 2];
    axis.kernel = weight[i + 1];
    axis.input_dilation =
        attributes.get<std::vector<int64_t>>("input_dilation")[static_cast<size_t>(i)];
    const int64_t spread = axis.input > 0 ? (axis.input - 1) * axis.input_dilation + 1 : 0;
    const int64_t room = spread + axis.before +
                         attributes.get<std::vector<int64_t>>("after")[static_cast<size_t>(i)] -
                         axis.dilation * (axis.kernel - 1) - 1;
    axis.output = room < 0 ? 0 : room / axis.stride + 1;
  }
  return g;
}

ConvGeometry ConvGeometry::of_weight_gradient(const Shape& x, const Shape& dy,
                                              const Attributes& attributes) {
  const int rank = x.rank() - 2;
  ConvGeometry g{.batch = x[0],
                 .inputs = x[1],
                 .outputs = dy[1],
                 .groups = attributes.get<int64_t>("groups"),
                 .axes = axes_of(attributes, rank)};
  for (int i = 0; i < rank; ++i) {
    ConvAxis& axis = g.axes[static_cast<size_t>(i)];
    axis.input = x[i + 2];
    axis.output = dy[i + 2];
    axis.kernel = attributes.get<std::vector<int64_t>>("kernel")[static_cast<size_t>(i)];
  }
  return g;
}

const std::vector<int64_t>& require_axis_numbers(const OpCall& call, std::string_view name,
                                                 int axes, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far above any tensor, far below overflow
  const auto& numbers = require_attribute<std::vector<int64_t>>(call, name);
  if (static_cast<int>(numbers.size()) != axes)
    call.fail(fmt::format("has {} numbers '{}' for {} spatial axes", numbers.size(), name, axes));
  for (int64_t number : numbers)
    if (number < least || number > kMost)
      call.fail(fmt::format("{} {} is not between {} and {}", name, number, least, kMost));
  return numbers;
}

Tensor adjoint_weight(Tensor weight, int64_t groups) {
  const int rank = weight.rank() - 2;
  const Shape& shape = weight.shape();
  const int64_t outputs = shape[0] / groups, inputs = shape[rank + 1];
  const Shape kernel = shape.slice(1, rank + 1);
  // [G, O, *K, C] -> [G, C, *K, O]
  std::vector<int64_t> split{groups, outputs}, joined{groups * inputs};
  for (int64_t extent : kernel.dims()) {
    split.push_back(extent);
    joined.push_back(extent);
  }
  split.push_back(inputs);
  joined.push_back(outputs);
  std::vector<int64_t> order(static_cast<size_t>(rank) + 3);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order.back());
  Tensor turned = reshape(transpose(reshape(weight, Shape(split)), order), Shape(joined));
  for (int axis = 1; axis <= rank; ++axis)
    if (kernel[axis - 1] > 1) turned = reverse(turned, axis);
  return turned;
}

Tensor convolution_of_extents(Tensor x, Tensor weight, const ConvNumbers& numbers,
                              const std::vector<int64_t>& extents, SourceLoc loc) {
  std::vector<int64_t> after(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t input = x.dim(static_cast<int>(i) + 2);
    const int64_t spread = input > 0 ? (input - 1) * numbers.input_dilation[i] + 1 : 0;
    after[i] = (extents[i] - 1) * numbers.stride[i] + 1 +
               numbers.dilation[i] * (weight.dim(static_cast<int>(i) + 1) - 1) - spread -
               numbers.before[i];
  }
  return apply("convolution", {x, weight},
               {{"stride", numbers.stride},
                {"before", numbers.before},
                {"after", after},
                {"dilation", numbers.dilation},
                {"input_dilation", numbers.input_dilation},
                {"groups", numbers.groups},
                {"wide", false}},
               loc);
}

}  // namespace fullbore
