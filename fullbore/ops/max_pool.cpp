#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/convolution_geometry.h"
#include "fullbore/ops/pooling.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Numbers = std::vector<int64_t>;

struct Windows {
  const Numbers &kernel, &stride, &padding, &dilation;

  explicit Windows(const Attributes& attributes)
      : kernel(attributes.get<Numbers>("kernel")),
        stride(attributes.get<Numbers>("stride")),
        padding(attributes.get<Numbers>("padding")),
        dilation(attributes.get<Numbers>("dilation")) {}

  int64_t output(size_t axis, int64_t extent) const {
    const int64_t room = extent + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1;
    return room < 0 ? 0 : room / stride[axis] + 1;
  }
};

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::floating);
  const TensorType& x = call.inputs[0];
  const int rank = x.shape.rank() - 2;
  if (rank < 1 || rank > 3)
    call.fail("needs x [N,C,*S] with one to three spatial axes, got " + x.text());
  for (const char* name : {"kernel", "stride", "dilation"})
    require_axis_numbers(call, name, rank, 1);
  require_axis_numbers(call, "padding", rank, 0);
  const Windows windows(call.attributes);
  Shape shape = x.shape;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const int axis = static_cast<int>(i) + 2;
    if (windows.padding[i] > windows.kernel[i] / 2)
      call.fail(fmt::format("padding {} is more than half of kernel {}", windows.padding[i],
                            windows.kernel[i]));
    shape[axis] = windows.output(i, x.shape[axis]);
    if (shape[axis] == 0)
      call.fail(
          fmt::format("kernel {} with dilation {} is larger than axis {} of {} with its "
                      "padding",
                      windows.kernel[i], windows.dilation[i], axis, operand_text("x", x)));
  }
  int64_t input = 1;
  for (int axis = 2; axis < x.shape.rank(); ++axis) input *= x.shape[axis];
  if (input > std::numeric_limits<int32_t>::max())
    call.fail(operand_text("x", x) + " has more positions than an i32 can count");
  return {{x.dtype, shape}, {DType::i32, shape}};
}

// x with the lowest number around its spatial axes.
Tensor surrounded(Tensor x, const Numbers& padding) {
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] == 0) continue;
    const int axis = static_cast<int>(i) + 2;
    const Tensor lowest = full(x.builder(), {x.dtype(), x.shape().with(axis, padding[i])},
                               -std::numeric_limits<double>::infinity());
    x = concat(std::array{lowest, x, lowest}, axis);
  }
  return x;
}

// Visits the elements of a window: visit(place of each axis, offset among the positions of x).
template <class Visit>
void for_each_element(const Windows& windows, const Shape& x, const Visit& visit) {
  for_each_index(Shape(windows.kernel), [&](const Numbers& k, int64_t) {
    Numbers place(k.size());
    int64_t offset = 0;
    for (size_t i = 0; i < k.size(); ++i) {
      place[i] = k[i] * windows.dilation[i];
      offset = offset * x[static_cast<int>(i) + 2] + place[i];
    }
    visit(place, offset);
  });
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const Windows windows(call.attributes);
  const Tensor all = surrounded(x, windows.padding);
  Tensor largest, index;
  TensorType positions{DType::i32, x.shape()};
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    positions.shape[axis] = windows.output(i, x.dim(axis));
  }
  for_each_element(windows, x.shape(), [&](const Numbers& place, int64_t offset) {
    Tensor element = all;
    for (size_t i = 0; i < place.size(); ++i) {
      const int axis = static_cast<int>(i) + 2;
      element =
          slice(element, axis, place[i],
                place[i] + (positions.shape[axis] - 1) * windows.stride[i] + 1, windows.stride[i]);
    }
    const auto number = static_cast<double>(offset);
    if (!largest.valid()) {
      index = full(x.builder(), positions, number);
      largest = element;
      return;
    }
    // False where the element is NaN, which then is the largest.
    const Tensor stays = logical_or(less_equal(element, largest), not_equal(largest, largest));
    index = select(stays, index, number);
    largest = maximum(largest, element);
  });
  int64_t apart = 1, before = 0;
  for (size_t i = windows.kernel.size(); i-- > 0;) {
    const int axis = static_cast<int>(i) + 2;
    index =
        index + iota(x.builder(), positions, axis) * static_cast<double>(windows.stride[i] * apart);
    before += windows.padding[i] * apart;
    apart *= x.dim(axis);
  }
  return {largest, before > 0 ? index - static_cast<double>(before) : index};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  if (!call.cotangents[0].valid()) return {{}};
  const Shape& y = call.outputs[0].shape();
  const auto flat = [](const Shape& shape) {
    return Shape{shape[0], shape[1], shape.slice(2, shape.rank()).elements()};
  };
  const Tensor sums = scatter_along_axis(reshape(call.cotangents[0], flat(y)),
                                         reshape(call.outputs[1], flat(y)), 2, flat(x.shape())[2]);
  return {reshape(sums, x.shape())};
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const Windows windows(call.attributes);
  const Shape& shape = call.outputs[0].shape();
  const int64_t input = x.shape().slice(2, x.shape().rank()).elements();
  for_each_index(shape, [&](const Numbers& at, int64_t flat) {
    const int64_t plane = (at[0] * shape[1] + at[1]) * input;
    double largest = 0;
    int64_t index = -1;
    for_each_index(Shape(windows.kernel), [&](const Numbers& k, int64_t) {
      int64_t position = 0;
      for (size_t i = 0; i < k.size(); ++i) {
        const int64_t place =
            at[i + 2] * windows.stride[i] - windows.padding[i] + k[i] * windows.dilation[i];
        const int64_t extent = x.shape()[static_cast<int>(i) + 2];
        if (place < 0 || place >= extent) return;
        position = position * extent + place;
      }
      const double element = x.at(plane + position);
      if (index >= 0 && (element <= largest || std::isnan(largest))) return;
      largest = element;
      index = position;
    });
    call.outputs[0].put(flat, largest);
    call.outputs[1].put(flat, static_cast<double>(index));
  });
}

Attributes attributes(Numbers kernel, Numbers stride, Numbers padding, Numbers dilation) {
  return {{"kernel", std::move(kernel)},
          {"stride", std::move(stride)},
          {"padding", std::move(padding)},
          {"dilation", std::move(dilation)}};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, Shape x, Attributes windows) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(x)})},
                  .attributes = std::move(windows)};
  };
  Sample ties{.why = "equal elements, infinities",
              .inputs = {SampleInput::given({DType::f32, {1, 1, 8}},
                                            {2, 2, 1, -HUGE_VAL, -HUGE_VAL, 3, 3, HUGE_VAL})},
              .attributes = attributes({2}, {1}, {1}, {1}),
              .gradcheck = false};
  return {of("halves", {2, 3, 4, 6}, attributes({2, 2}, {2, 2}, {0, 0}, {1, 1})),
          of("overlapping, padded", {1, 2, 5, 7}, attributes({3, 3}, {2, 2}, {1, 1}, {1, 1})),
          of("one axis, dilated", {2, 1, 9}, attributes({3}, {1}, {1}, {2})),
          of("three axes", {1, 2, 3, 4, 3}, attributes({1, 2, 3}, {2, 1, 1}, {0, 1, 1}, {1, 1, 1})),
          of("wider than 16 lanes", {1, 1, 3, 37}, attributes({2, 3}, {1, 2}, {1, 0}, {1, 1})),
          of("no images", {0, 2, 4}, attributes({2}, {2}, {0}, {1})),
          std::move(ties)};
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {2, 3, 4, 2}};
  return {{"a window that does not fit",
           {x},
           attributes({3, 3}, {1, 1}, {1, 0}, {1, 1}),
           "kernel 3 with dilation 1 is larger than axis 3 of x f32[2,3,4,2] with its padding"},
          {"nothing but padding",
           {x},
           attributes({2, 2}, {1, 1}, {2, 0}, {1, 1}),
           "padding 2 is more than half of kernel 2"},
          {"no stride", {x}, attributes({2, 2}, {0, 1}, {0, 0}, {1, 1}), "stride 0 is not between"},
          {"one number for two axes",
           {x},
           attributes({2}, {1, 1}, {0, 0}, {1, 1}),
           "has 1 numbers 'kernel' for 2 spatial axes"},
          {"no spatial axes",
           {{DType::f32, {2, 3}}},
           attributes({}, {}, {}, {}),
           "one to three spatial axes, got f32[2,3]"},
          {"integers",
           {{DType::i32, {2, 3, 4}}},
           attributes({2}, {1}, {0}, {1}),
           "needs floating x, got i32[2,3,4]"}};
}

const OpRegistrar max_pool_op(OpDef{
    .name = "max_pool",
    .summary = "largest element of each window, and where it is",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

std::tuple<Tensor, Tensor> max_pool_with_indices(Tensor x, const PoolOptions& options,
                                                 SourceLoc loc) {
  require_tensor("max_pool", "x", x, loc);
  const int rank = std::max(1, x.rank() - 2);
  const auto each = [&](const PerAxis& numbers, const char* name, int64_t least) {
    return each_axis("max_pool", numbers, name, rank, least, loc);
  };
  const PerAxis& stride = options.stride.values.empty() ? options.kernel : options.stride;
  const std::vector<Tensor> made = apply_all(
      "max_pool", std::array{x},
      attributes(each(options.kernel, "kernel", 1), each(stride, "stride", 1),
                 each(options.padding, "padding", 0), each(options.dilation, "dilation", 1)),
      loc);
  return {made[0], made[1]};
}

Tensor max_pool(Tensor x, const PoolOptions& options, SourceLoc loc) {
  return std::get<0>(max_pool_with_indices(x, options, loc));
}

}  // namespace fullbore
