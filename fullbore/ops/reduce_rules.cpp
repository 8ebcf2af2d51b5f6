#include <algorithm>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/reduce.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Axes = std::vector<int64_t>;

bool has_axis(const Axes& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace

Shape with_unit_axes(Shape shape, const Axes& axes) {
  for (int64_t axis : axes) shape[static_cast<int>(axis)] = 1;
  return shape;
}

Tensor restore_axes(Tensor reduced, const Shape& shape, const Axes& axes) {
  return broadcast_to(reshape(reduced, with_unit_axes(shape, axes)), shape);
}

std::vector<TensorType> infer_reduction(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::numeric);
  const TensorType& x = call.inputs[0];
  const Axes& axes = require_attribute<Axes>(call, "axes");
  if (axes.empty()) call.fail("needs at least one axis");
  for (size_t i = 0; i < axes.size(); ++i) {
    require_axis(call, axes[i], "x", x);
    if (i > 0 && axes[i] == axes[i - 1])
      call.fail(fmt::format("axis {} is given twice for {}", axes[i], operand_text("x", x)));
    if (i > 0 && axes[i] < axes[i - 1]) call.fail("axes of a node must ascend");
  }
  Shape shape;
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (!has_axis(axes, axis)) shape = shape.inserted(shape.rank(), x.shape[axis]);
  return {{x.dtype, shape}};
}

Cost reduction_cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  if (is_floating(call.inputs[0].dtype))
    cost.flops = static_cast<double>(call.inputs[0].elements());
  return cost;
}

std::vector<int64_t> reduced_strides(const Shape& shape, const Axes& axes) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 0);
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (has_axis(axes, axis)) continue;
    strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Tensor apply_reduction(std::string_view op, Tensor x, std::vector<int64_t> axes, bool keep_dims,
                       SourceLoc loc) {
  require_tensor(op, "x", x, loc);
  if (axes.empty()) return x;
  axes = normal_axes(std::move(axes), x.rank());
  std::sort(axes.begin(), axes.end());
  const Tensor y = apply(op, {x}, {{"axes", axes}}, loc);
  return keep_dims ? reshape(y, with_unit_axes(x.shape(), axes), loc) : y;
}

std::vector<Sample> reduction_samples(const SampleInput& fill, bool of_nothing) {
  struct Case {
    const char* why;
    Shape shape;
    Axes axes;
  };
  std::vector<Case> cases = {
      {"one element", {1}, {0}},
      {"the only axis", {7}, {0}},
      {"rows, odd", {3, 5}, {1}},
      {"columns, odd", {3, 5}, {0}},
      {"the middle axis", {3, 4, 5}, {1}},
      {"first and last", {3, 4, 5}, {0, 2}},
      {"the last two of four", {2, 3, 4, 5}, {2, 3}},
      {"interleaved", {2, 3, 4, 5}, {0, 2}},
      {"everything", {4, 3, 2}, {0, 1, 2}},
      {"rows of one element", {6, 1}, {1}},
      {"one row", {1, 9}, {0}},
      {"one below 16 lanes", {2, 15}, {1}},
      {"one above 16 lanes", {2, 17}, {1}},
      {"one below 128", {2, 127}, {1}},
      {"one above 128", {2, 129}, {1}},
      {"one above 1024", {1, 1025}, {1}},
      {"a long column, wider than lanes", {65, 33}, {0}},
      {"no results", {0, 3}, {1}},
  };
  if (of_nothing) {
    cases.push_back({"of no elements", {3, 0}, {1}});
    cases.push_back({"of no elements at all", {0}, {0}});
  }
  std::vector<Sample> samples;
  for (const Case& each : cases) {
    Sample sample{.why = each.why, .inputs = {fill}, .attributes = {{"axes", each.axes}}};
    sample.inputs[0].type.shape = each.shape;
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<ErrorSample> reduction_errors() {
  const TensorType x{DType::f32, {8, 4, 2}};
  return {
      {"an axis beyond the last",
       {x},
       {{"axes", Axes{3}}},
       "axis 3 out of range [-3, 2] for x f32[8,4,2]"},
      {"an axis twice", {x}, {{"axes", Axes{1, 1}}}, "axis 1 is given twice for x f32[8,4,2]"},
      {"no axis", {x}, {{"axes", Axes{}}}, "needs at least one axis"},
      {"truth values",
       {{DType::boolean, {4}}},
       {{"axes", Axes{0}}},
       "needs numeric x, got bool[4]"},
      {"a scalar", {{DType::f32, {}}}, {{"axes", Axes{0}}}, "which has no axes"},
      {"no attribute", {x}, {}, "needs attribute 'axes'"},
      {"two operands", {x, x}, {{"axes", Axes{0}}}, "needs 1 operands, got 2"},
  };
}

}  // namespace fullbore
