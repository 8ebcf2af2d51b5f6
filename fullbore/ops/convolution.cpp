#include "fullbore/ops/convolution.h"

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/convolution_geometry.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Numbers = std::vector<int64_t>;

// x [N,C,*S], weight [O,*K,C/groups]: channels of the weight are last, so that what one output sums lies together.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_same_dtype(call, 0, "x", 1, "weight");
  const TensorType &x = call.inputs[0], &weight = call.inputs[1];
  const int rank = x.shape.rank() - 2;
  if (rank < 1 || rank > 3)
    call.fail("needs x [N,C,*S] with one to three spatial axes, got " + x.text());
  require_rank(call, 1, "weight", rank + 2);
  const Numbers& stride = require_axis_numbers(call, "stride", rank, 1);
  const Numbers& input_dilation = require_axis_numbers(call, "input_dilation", rank, 1);
  constexpr int64_t kLeast = -(int64_t{1} << 40);
  for (const char* name : {"before", "after"}) require_axis_numbers(call, name, rank, kLeast);
  const Numbers& dilation = require_axis_numbers(call, "dilation", rank, 1);
  const int64_t groups = require_attribute<int64_t>(call, "groups");
  const bool wide = require_attribute<bool>(call, "wide");
  if (groups < 1) call.fail(fmt::format("groups {} is not positive", groups));
  const std::string operands = operand_text("x", x) + " and " + operand_text("weight", weight);
  if (x.shape[1] != groups * weight.shape[rank + 1])
    call.fail(fmt::format("{} channels of {} are not {} groups of the {} that weight {} reads",
                          x.shape[1], operand_text("x", x), groups, weight.shape[rank + 1],
                          weight.text()));
  if (weight.shape[0] % groups != 0)
    call.fail(fmt::format("{} outputs of {} do not divide into {} groups", weight.shape[0],
                          operand_text("weight", weight), groups));
  const auto above_one = [](int64_t number) { return number > 1; };
  if (std::ranges::any_of(stride, above_one) && std::ranges::any_of(input_dilation, above_one))
    call.fail("has both strides and zeros between its inputs");
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    if (weight.shape[i + 1] == 0) call.fail(operand_text("weight", weight) + " reads nothing");
    constexpr int64_t kWidest = int64_t{1} << 48;
    if (weight.shape[i + 1] > kWidest / dilation[at] ||
        x.shape[i + 2] > kWidest / input_dilation[at])
      call.fail("dilations are absurd for " + operands);
  }
  const ConvGeometry g = ConvGeometry::of_convolution(x.shape, weight.shape, call.attributes);
  Shape shape{x.shape[0], weight.shape[0]};
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const ConvAxis& axis = g.axes[i];
    if (axis.output == 0 && x.shape[static_cast<int>(i) + 2] > 0)
      call.fail(
          fmt::format("kernel {} with dilation {} is larger than axis {} of {} with its "
                      "padding",
                      axis.kernel, axis.dilation, i + 2, operand_text("x", x)));
    shape = shape.inserted(shape.rank(), axis.output);
  }
  require_elements(call, shape);
  return {{wide ? compute_dtype(x.dtype) : x.dtype, shape}};
}

void reference(ReferenceCall& call) {
  const Literal &x = *call.inputs[0], &weight = *call.inputs[1];
  const ConvGeometry g = ConvGeometry::of_convolution(x.shape(), weight.shape(), call.attributes);
  const int64_t input = g.input_elements(), output = g.output_elements();
  const int64_t kernel = g.kernel_elements(), inner = g.group_inputs();
  std::vector<double>& y = call.outputs[0].reals();
  std::vector<double> magnitudes(y.size(), 0);
  const auto terms = static_cast<double>(kernel * inner);
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.outputs; ++o)
      for_each_read(g, [&](int64_t k, int64_t p, int64_t i) {
        const auto to = static_cast<size_t>((n * g.outputs + o) * output + p);
        const int64_t first = o / g.group_outputs() * inner;
        for (int64_t c = 0; c < inner; ++c) {
          const double term = weight.at((o * kernel + k) * inner + c) *
                              x.at((n * g.inputs + first + c) * input + i);
          y[to] += term;
          magnitudes[to] += terms * std::abs(term);
        }
      });
  call.magnitudes = {std::move(magnitudes)};
}

ConvNumbers numbers_of(const Attributes& attributes) {
  return {attributes.get<Numbers>("stride"), attributes.get<Numbers>("before"),
          attributes.get<Numbers>("dilation"), attributes.get<Numbers>("input_dilation"),
          attributes.get<int64_t>("groups")};
}

// The convolution that has this one's x as its result, and its result as x.
ConvNumbers transposed(ConvNumbers numbers, const Tensor& weight) {
  std::swap(numbers.stride, numbers.input_dilation);
  for (size_t i = 0; i < numbers.before.size(); ++i)
    numbers.before[i] =
        numbers.dilation[i] * (weight.dim(static_cast<int>(i) + 1) - 1) - numbers.before[i];
  return numbers;
}

Numbers spatial(const Tensor& x) { return x.shape().slice(2, x.rank()).dims(); }

std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0], weight = call.inputs[1];
  const Tensor dy = as_dtype(call.cotangents[0], x.dtype());
  const ConvNumbers numbers = numbers_of(call.attributes);
  const ConvNumbers back = transposed(numbers, weight);
  Tensor dx, dweight;
  if (call.wanted[0])
    dx = convolution_of_extents(dy, adjoint_weight(weight, numbers.groups), back, spatial(x),
                                call.loc);
  if (call.wanted[1]) {
    const Numbers kernel = weight.shape().slice(1, weight.rank() - 1).dims();
    bool spread = false;
    for (int64_t each : numbers.input_dilation) spread = spread || each > 1;
    // With zeros between its inputs it is a transposed convolution: x and dy change places.
    dweight = spread ? adjoint_weight(convolution_weight_sum(dy, x, back, kernel), numbers.groups)
                     : convolution_weight_sum(x, dy, numbers, kernel);
  }
  return {dx, dweight};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  cost.flops =
      ConvGeometry::of_convolution(call.inputs[0].shape, call.inputs[1].shape, call.attributes)
          .flops();
  return cost;
}

struct Extents {
  int64_t batch = 2, groups = 1;
  Shape x = {}, weight = {};  ///< x [C,*S], weight [O,*K,C/groups]
  Numbers stride = {}, before = {}, after = {}, dilation = {}, input_dilation = {};
};

Attributes attributes(Extents e, bool wide = false) {
  const auto rank = static_cast<size_t>(e.x.rank() - 1);
  if (e.stride.empty()) e.stride.assign(rank, 1);
  if (e.before.empty()) e.before.assign(rank, 0);
  if (e.after.empty()) e.after = e.before;
  if (e.dilation.empty()) e.dilation.assign(rank, 1);
  if (e.input_dilation.empty()) e.input_dilation.assign(rank, 1);
  return {{"stride", e.stride}, {"before", e.before},
          {"after", e.after},   {"dilation", e.dilation},
          {"groups", e.groups}, {"input_dilation", e.input_dilation},
          {"wide", wide}};
}

Sample sample(std::string why, const Extents& e, bool wide = false) {
  return {.why = std::move(why),
          .inputs = {SampleInput::normal({DType::f32, e.x.inserted(0, e.batch)}),
                     SampleInput::normal({DType::f32, e.weight})},
          .attributes = attributes(e, wide)};
}

std::vector<Sample> samples() {
  return {
      sample("3 x 3, padded", {.x = {2, 4, 5}, .weight = {3, 3, 3, 2}, .before = {1, 1}}),
      sample("1 x 1", {.x = {5, 3, 3}, .weight = {4, 1, 1, 5}}),
      sample("strides",
             {.x = {2, 7, 6}, .weight = {3, 3, 2, 2}, .stride = {2, 3}, .before = {1, 0}}),
      sample("dilations",
             {.x = {2, 7, 6}, .weight = {2, 3, 2, 2}, .before = {1, 2}, .dilation = {2, 3}}),
      sample("groups, one axis", {.groups = 2, .x = {4, 9}, .weight = {6, 3, 2}, .before = {1}}),
      sample("each channel for itself",
             {.groups = 3, .x = {3, 4, 4}, .weight = {3, 3, 3, 1}, .before = {1, 1}}),
      sample("two outputs of each channel, dilated", {.groups = 2,
                                                      .x = {2, 3, 70},
                                                      .weight = {4, 2, 3, 1},
                                                      .before = {1, 2},
                                                      .dilation = {1, 2}}),
      sample("three axes", {.batch = 1,
                            .x = {2, 3, 4, 3},
                            .weight = {2, 2, 3, 2, 2},
                            .stride = {1, 2, 1},
                            .before = {0, 1, 1}}),
      sample("transposed: zeros between inputs", {.x = {2, 3, 4},
                                                  .weight = {2, 3, 3, 2},
                                                  .before = {1, 2},
                                                  .after = {2, 1},
                                                  .input_dilation = {2, 3}}),
      sample("transposed along one axis",
             {.x = {2, 3, 5}, .weight = {2, 2, 3, 2}, .before = {1, 1}, .input_dilation = {2, 1}}),
      sample("crops",
             {.x = {1, 7, 6}, .weight = {2, 2, 2, 1}, .before = {-1, -2}, .after = {1, -1}}),
      sample("zeros between inputs, more than the kernel reaches", {.batch = 1,
                                                                    .x = {2, 3},
                                                                    .weight = {2, 2, 2},
                                                                    .before = {1},
                                                                    .after = {2},
                                                                    .input_dilation = {4}}),
      sample("as wide as a block of columns, and one more",
             {.batch = 1, .x = {3, 65}, .weight = {2, 3, 3}, .before = {1}}),
      sample("blocks of columns across images",
             {.batch = 5, .x = {2, 3, 5}, .weight = {3, 3, 3, 2}, .before = {1, 1}}),
      sample("deep", {.batch = 1, .x = {37, 3, 3}, .weight = {2, 3, 3, 37}, .before = {1, 1}}),
      sample("many channels, padded unevenly", {.batch = 3,
                                                .x = {16, 4, 5},
                                                .weight = {3, 3, 3, 16},
                                                .before = {1, 2},
                                                .after = {0, 1}}),
      sample("channels that fill tiles",
             {.batch = 2, .x = {32, 5, 9}, .weight = {48, 3, 3, 32}, .before = {1, 1}}),
      sample("groups that fill tiles, dilated", {.batch = 1,
                                                 .groups = 2,
                                                 .x = {64, 70},
                                                 .weight = {32, 3, 32},
                                                 .before = {2},
                                                 .dilation = {2}}),
      sample("many channels at each position", {.x = {32, 7, 11}, .weight = {16, 1, 1, 32}}),
      sample("rows of two vectors, more channels than are multiplied at a time",
             {.batch = 1, .x = {40, 3, 16}, .weight = {13, 3, 3, 40}, .before = {1, 1}}),
      sample("rows of one vector, an odd number of them",
             {.batch = 2, .x = {16, 3, 8}, .weight = {7, 3, 3, 16}, .before = {1, 1}}),
      sample("rows of whole vectors, strides, groups", {.batch = 1,
                                                        .groups = 2,
                                                        .x = {32, 5, 16},
                                                        .weight = {6, 3, 3, 16},
                                                        .stride = {2, 2},
                                                        .before = {1, 1}}),
      sample("many channels, cropped",
             {.batch = 1, .x = {17, 6, 7}, .weight = {2, 2, 2, 17}, .before = {-1, -2}}),
      sample("one position of a row, of one alone among three",
             {.x = {16, 3, 4}, .weight = {2, 1, 1, 16}, .before = {-1, 0}, .after = {-1, 0}}),
      sample("many channels, strides, dilated", {.batch = 2,
                                                 .x = {18, 9, 8},
                                                 .weight = {3, 3, 2, 18},
                                                 .stride = {2, 3},
                                                 .before = {1, 2},
                                                 .after = {2, 1},
                                                 .dilation = {1, 3}}),
      sample("many channels at every second position",
             {.x = {16, 7, 6}, .weight = {4, 1, 1, 16}, .stride = {2, 2}}),
      sample("as many outputs as inputs, at every second position",
             {.x = {3, 4}, .weight = {2, 1, 3}, .stride = {2}, .before = {0}, .after = {3}}),
      sample("as many outputs as inputs, of one row cropped and the other padded",
             {.x = {3, 2, 3}, .weight = {2, 1, 1, 3}, .before = {0, 0}, .after = {-1, 3}}),
      sample("as many outputs as inputs, moved by a row",
             {.x = {16, 1, 8}, .weight = {2, 1, 1, 16}, .before = {1, 0}, .after = {-1, 0}}),
      sample("three axes, many channels, strides", {.batch = 1,
                                                    .x = {16, 5, 4, 5},
                                                    .weight = {2, 3, 2, 3, 16},
                                                    .stride = {2, 1, 2},
                                                    .before = {1, 0, 1}}),
      sample("few channels, strides, more than a block of columns", {.batch = 2,
                                                                     .x = {3, 9, 37},
                                                                     .weight = {7, 7, 5, 3},
                                                                     .stride = {2, 2},
                                                                     .before = {3, 2}}),
      sample("one channel, strides",
             {.x = {1, 6, 9}, .weight = {3, 3, 3, 1}, .stride = {1, 2}, .before = {1, 1}}),
      sample("sums kept in f32", {.x = {3, 5}, .weight = {2, 3, 3}, .before = {1}}, true),
      sample("no images", {.batch = 0, .x = {2, 4, 5}, .weight = {3, 3, 3, 2}, .before = {1, 1}}),
      sample("no channels: zeros", {.x = {0, 4}, .weight = {3, 2, 0}}),
  };
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const Extents plain{.x = {4, 5, 5}, .weight = {6, 3, 3, 4}};
  Extents both = plain, still = plain, grouped = plain;
  both.stride = {2, 1};
  both.input_dilation = {1, 2};
  still.stride = {1, 0};
  grouped.groups = 4;
  return {
      {"other channels",
       {f32({2, 3, 5, 5}), f32({6, 3, 3, 4})},
       attributes(plain),
       "3 channels of x f32[2,3,5,5] are not 1 groups of the 4 that weight f32[6,3,3,4] reads"},
      {"outputs that do not divide",
       {f32({2, 16, 5, 5}), f32({6, 3, 3, 4})},
       attributes(grouped),
       "6 outputs of weight f32[6,3,3,4] do not divide into 4 groups"},
      {"no spatial axes",
       {f32({2, 4}), f32({6, 4})},
       attributes(plain),
       "one to three spatial axes, got f32[2,4]"},
      {"a weight of another rank",
       {f32({2, 4, 5, 5}), f32({6, 3, 4})},
       attributes(plain),
       "needs weight of rank 4, got f32[6,3,4]"},
      {"a kernel that does not fit",
       {f32({2, 4, 5, 2}), f32({6, 3, 3, 4})},
       attributes(plain),
       "kernel 3 with dilation 1 is larger than axis 3 of x f32[2,4,5,2] with its padding"},
      {"no stride",
       {f32({2, 4, 5, 5}), f32({6, 3, 3, 4})},
       attributes(still),
       "stride 0 is not between 1 and"},
      {"a stride and zeros between inputs",
       {f32({2, 4, 5, 5}), f32({6, 3, 3, 4})},
       attributes(both),
       "has both strides and zeros between its inputs"},
      {"two dtypes",
       {f32({2, 4, 5, 5}), {DType::bf16, {6, 3, 3, 4}}},
       attributes(plain),
       "differ in dtype"},
      {"integers",
       {{DType::i32, {2, 4, 5, 5}}, {DType::i32, {6, 3, 3, 4}}},
       attributes(plain),
       "needs floating x"},
      {"an empty kernel",
       {f32({2, 4, 5, 5}), f32({6, 0, 3, 4})},
       attributes(plain),
       "reads nothing"},
  };
}

const OpRegistrar convolution_op(OpDef{
    .name = "convolution",
    .summary = "sums of channels under a kernel that moves over one to three axes",
    .tags = Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = error_samples,
});

// weight [A,B,*K] -> [A,*K,B]
Tensor channels_last(Tensor weight, SourceLoc loc) {
  Numbers order{0};
  for (int axis = 2; axis < weight.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return transpose(weight, order, loc);
}

struct CallerCheck {
  const char* op;
  SourceLoc loc;

  [[noreturn]] void fail(const std::string& message) const {
    throw UsageError(fmt::format("{}: {}", op, message), loc);
  }
  // The axes of a call in PyTorch's layout.
  int rank(Tensor x, Tensor weight) const {
    require_tensor(op, "x", x, loc);
    require_tensor(op, "weight", weight, loc);
    const int rank = x.rank() - 2;
    if (rank < 1 || rank > 3)
      fail("needs x [N,C,*S] with one to three spatial axes, got " + x.type().text());
    if (weight.rank() != rank + 2)
      fail(fmt::format("needs weight of rank {} for {}, got {}", rank + 2,
                       operand_text("x", x.type()), weight.type().text()));
    return rank;
  }
  Numbers each(const PerAxis& numbers, const char* name, int axes, int64_t least) const {
    return each_axis(op, numbers, name, axes, least, loc);
  }
  Tensor with_bias(Tensor y, Tensor bias) const {
    if (!bias.valid()) return y;
    const TensorType fits{y.dtype(), {y.dim(1)}};
    if (bias.type() != fits)
      fail(fmt::format("needs bias {}, got {}", fits.text(), bias.type().text()));
    Numbers shape(static_cast<size_t>(y.rank()) - 1, 1);
    shape[0] = y.dim(1);
    return add({y, loc}, {reshape(bias, Shape(shape), loc), loc});
  }
};

}  // namespace

Tensor convolution(Tensor x, Tensor weight, Tensor bias, const ConvOptions& options,
                   SourceLoc loc) {
  const CallerCheck check{"convolution", loc};
  const int rank = check.rank(x, weight);
  const Numbers padding = check.each(options.padding, "padding", rank, 0);
  const Tensor y = apply("convolution", {x, channels_last(weight, loc)},
                         {{"stride", check.each(options.stride, "stride", rank, 1)},
                          {"before", padding},
                          {"after", padding},
                          {"dilation", check.each(options.dilation, "dilation", rank, 1)},
                          {"input_dilation", Numbers(static_cast<size_t>(rank), 1)},
                          {"groups", options.groups},
                          {"wide", false}},
                         loc);
  return check.with_bias(y, bias);
}

Tensor transposed_convolution(Tensor x, Tensor weight, Tensor bias,
                              const TransposedConvOptions& options, SourceLoc loc) {
  const CallerCheck check{"transposed_convolution", loc};
  const int rank = check.rank(x, weight);
  ConvNumbers numbers{Numbers(static_cast<size_t>(rank), 1),
                      check.each(options.padding, "padding", rank, 0),
                      check.each(options.dilation, "dilation", rank, 1),
                      check.each(options.stride, "stride", rank, 1), options.groups};
  const Numbers more = check.each(options.output_padding, "output_padding", rank, 0);
  if (options.groups < 1 || weight.dim(0) % options.groups != 0 || x.dim(1) != weight.dim(0))
    check.fail(fmt::format("{} channels of {} are not those of weight {} in {} groups", x.dim(1),
                           operand_text("x", x.type()), weight.type().text(), options.groups));
  Numbers extents, before;
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t reach = numbers.dilation[at] * (weight.dim(i + 2) - 1);
    if (more[at] >= std::max(numbers.input_dilation[at], numbers.dilation[at]))
      check.fail(fmt::format("output_padding {} is not less than stride {} or dilation {}",
                             more[at], numbers.input_dilation[at], numbers.dilation[at]));
    extents.push_back((x.dim(i + 2) - 1) * numbers.input_dilation[at] - 2 * numbers.before[at] +
                      reach + more[at] + 1);
    if (x.dim(i + 2) == 0 || extents.back() < 1)
      check.fail(fmt::format("padding {} leaves nothing of axis {} of {}", numbers.before[at],
                             i + 2, operand_text("x", x.type())));
    before.push_back(reach - numbers.before[at]);
  }
  numbers.before = before;
  const Tensor turned = adjoint_weight(channels_last(weight, loc), options.groups);
  return check.with_bias(convolution_of_extents(x, turned, numbers, extents, loc), bias);
}

}  // namespace fullbore
