#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/convolution_geometry.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Numbers = std::vector<int64_t>;

// Images per part, all parts but the last.
int64_t part_images(int64_t batch, int64_t parts) { return (batch + parts - 1) / parts; }

// x [N,C,*S], dy [N,O,*P] -> [parts,O,*K,C/groups]: sums over equal parts of the batch, which run side by side.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_same_dtype(call, 0, "x", 1, "dy");
  const TensorType &x = call.inputs[0], &dy = call.inputs[1];
  const int rank = x.shape.rank() - 2;
  if (rank < 1 || rank > 3)
    call.fail("needs x [N,C,*S] with one to three spatial axes, got " + x.text());
  require_rank(call, 1, "dy", rank + 2);
  require_axis_numbers(call, "stride", rank, 1);
  require_axis_numbers(call, "before", rank, -(int64_t{1} << 40));
  require_axis_numbers(call, "dilation", rank, 1);
  const Numbers& kernel = require_axis_numbers(call, "kernel", rank, 1);
  const int64_t groups = require_attribute<int64_t>(call, "groups");
  const int64_t parts = require_attribute<int64_t>(call, "parts");
  const bool wide = require_attribute<bool>(call, "wide");
  if (x.shape[0] != dy.shape[0])
    call.fail(operand_text("x", x) + " and " + operand_text("dy", dy) + " differ in their images");
  if (groups < 1 || x.shape[1] % groups != 0 || dy.shape[1] % groups != 0)
    call.fail(fmt::format("channels of {} and {} do not divide into {} groups",
                          operand_text("x", x), operand_text("dy", dy), groups));
  if (parts < 1 || parts > std::max<int64_t>(1, x.shape[0]))
    call.fail(
        fmt::format("parts {} is not between 1 and the images of {}", parts, operand_text("x", x)));
  Shape shape{parts, dy.shape[1]};
  for (int64_t extent : kernel) shape = shape.inserted(shape.rank(), extent);
  shape = shape.inserted(shape.rank(), x.shape[1] / groups);
  require_elements(call, shape);
  return {{wide ? compute_dtype(x.dtype) : x.dtype, shape}};
}

void reference(ReferenceCall& call) {
  const Literal &x = *call.inputs[0], &dy = *call.inputs[1];
  const ConvGeometry g = ConvGeometry::of_weight_gradient(x.shape(), dy.shape(), call.attributes);
  const int64_t input = g.input_elements(), output = g.output_elements();
  const int64_t kernel = g.kernel_elements(), inner = g.group_inputs();
  const int64_t images = part_images(g.batch, call.attributes.get<int64_t>("parts"));
  std::vector<double>& dweight = call.outputs[0].reals();
  std::vector<double> magnitudes(dweight.size(), 0);
  const auto terms = static_cast<double>(images * output);
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.outputs; ++o)
      for_each_read(g, [&](int64_t k, int64_t p, int64_t i) {
        const int64_t first = o / g.group_outputs() * inner;
        for (int64_t c = 0; c < inner; ++c) {
          const double term = dy.at((n * g.outputs + o) * output + p) *
                              x.at((n * g.inputs + first + c) * input + i);
          const auto to =
              static_cast<size_t>(((n / images * g.outputs + o) * kernel + k) * inner + c);
          dweight[to] += term;
          magnitudes[to] += terms * std::abs(term);
        }
      });
  call.magnitudes = {std::move(magnitudes)};
}

// Linear in each operand, so that a gradient has this op's own kind of terms: with g for weights, dx is what a
// convolution's dx is of dy, and ddy the convolution of x.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0], dy = call.inputs[1];
  const Tensor g = as_dtype(call.cotangents[0], x.dtype());
  const int64_t groups = call.attributes.get<int64_t>("groups");
  const ConvNumbers numbers{call.attributes.get<Numbers>("stride"),
                            call.attributes.get<Numbers>("before"),
                            call.attributes.get<Numbers>("dilation"),
                            Numbers(static_cast<size_t>(x.rank()) - 2, 1), groups};
  ConvNumbers back = numbers;
  std::swap(back.stride, back.input_dilation);
  const Numbers& kernel = call.attributes.get<Numbers>("kernel");
  for (size_t i = 0; i < kernel.size(); ++i)
    back.before[i] = numbers.dilation[i] * (kernel[i] - 1) - numbers.before[i];
  const auto spatial = [](const Tensor& t) { return t.shape().slice(2, t.rank()).dims(); };
  const int64_t images = part_images(x.dim(0), g.dim(0));
  std::vector<Tensor> dx, ddy;
  for (int64_t part = 0; part * images < x.dim(0); ++part) {
    const int64_t begin = part * images, end = std::min(x.dim(0), begin + images);
    const Tensor weight = squeeze(slice(g, 0, part, part + 1), 0);
    if (call.wanted[0])
      dx.push_back(convolution_of_extents(slice(dy, 0, begin, end), adjoint_weight(weight, groups),
                                          back, spatial(x), call.loc));
    if (call.wanted[1])
      ddy.push_back(
          convolution_of_extents(slice(x, 0, begin, end), weight, numbers, spatial(dy), call.loc));
  }
  const auto joined = [](const std::vector<Tensor>& parts, Tensor like) {
    return parts.empty() ? zeros_like(like) : parts.size() == 1 ? parts[0] : concat(parts, 0);
  };
  return {call.wanted[0] ? joined(dx, x) : Tensor(), call.wanted[1] ? joined(ddy, dy) : Tensor()};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  cost.flops =
      ConvGeometry::of_weight_gradient(call.inputs[0].shape, call.inputs[1].shape, call.attributes)
          .flops();
  return cost;
}

struct Extents {
  int64_t batch = 2, parts = 1, groups = 1;
  Shape x = {}, dy = {};  ///< x [C,*S], dy [O,*P]
  Numbers kernel = {}, stride = {}, before = {}, dilation = {};
};

Attributes attributes(Extents e, bool wide = false) {
  const auto rank = e.kernel.size();
  if (e.stride.empty()) e.stride.assign(rank, 1);
  if (e.before.empty()) e.before.assign(rank, 0);
  if (e.dilation.empty()) e.dilation.assign(rank, 1);
  return {{"stride", e.stride}, {"before", e.before}, {"dilation", e.dilation},
          {"groups", e.groups}, {"kernel", e.kernel}, {"parts", e.parts},
          {"wide", wide}};
}

Sample sample(std::string why, const Extents& e, bool wide = false) {
  return {.why = std::move(why),
          .inputs = {SampleInput::normal({DType::f32, e.x.inserted(0, e.batch)}),
                     SampleInput::normal({DType::f32, e.dy.inserted(0, e.batch)})},
          .attributes = attributes(e, wide)};
}

std::vector<Sample> samples() {
  return {
      sample("3 x 3, padded",
             {.x = {2, 4, 5}, .dy = {3, 4, 5}, .kernel = {3, 3}, .before = {1, 1}}),
      sample("1 x 1", {.x = {5, 3, 3}, .dy = {4, 3, 3}, .kernel = {1, 1}}),
      sample("1 x 1, as many outputs as inputs, at every second position",
             {.x = {3, 4}, .dy = {2, 4}, .kernel = {1}, .stride = {2}, .before = {0}}),
      sample("1 x 1, as many outputs as inputs, of one row cropped and the other padded",
             {.x = {3, 2, 3}, .dy = {2, 1, 6}, .kernel = {1, 1}, .before = {0, 0}}),
      sample("1 x 1, as many outputs as inputs, moved by a row",
             {.x = {16, 1, 8}, .dy = {2, 1, 8}, .kernel = {1, 1}, .before = {1, 0}}),
      sample(
          "strides",
          {.x = {2, 7, 6}, .dy = {3, 4, 2}, .kernel = {3, 2}, .stride = {2, 3}, .before = {1, 0}}),
      sample("dilations", {.x = {2, 7, 6},
                           .dy = {2, 5, 7},
                           .kernel = {3, 2},
                           .before = {1, 2},
                           .dilation = {2, 3}}),
      sample("groups, one axis",
             {.groups = 2, .x = {4, 9}, .dy = {6, 9}, .kernel = {3}, .before = {1}}),
      sample("each channel for itself",
             {.groups = 3, .x = {3, 4, 4}, .dy = {3, 4, 4}, .kernel = {3, 3}, .before = {1, 1}}),
      sample("two outputs of each channel, dilated, in parts", {.batch = 3,
                                                                .parts = 2,
                                                                .groups = 2,
                                                                .x = {2, 3, 35},
                                                                .dy = {4, 4, 35},
                                                                .kernel = {2, 3},
                                                                .before = {1, 2},
                                                                .dilation = {1, 2}}),
      sample("three axes", {.batch = 1,
                            .x = {2, 3, 4, 3},
                            .dy = {2, 2, 2, 4},
                            .kernel = {2, 3, 2},
                            .stride = {1, 2, 1},
                            .before = {0, 1, 1}}),
      sample("parts, the last one shorter",
             {.batch = 5, .parts = 3, .x = {2, 6}, .dy = {3, 6}, .kernel = {3}, .before = {1}}),
      sample("parts without images",
             {.batch = 5, .parts = 4, .x = {2, 3}, .dy = {3, 3}, .kernel = {1}}),
      sample("a kernel that never reaches the input",
             {.x = {2, 3}, .dy = {3, 2}, .kernel = {2}, .before = {9}}),
      sample("more outputs than a block of columns, sums kept in f32",
             {.batch = 1, .x = {2, 4}, .dy = {65, 4}, .kernel = {1}}, true),
      sample("channels that fill tiles",
             {.batch = 3, .x = {32, 5, 9}, .dy = {16, 5, 9}, .kernel = {3, 3}, .before = {1, 1}}),
      sample("groups that fill tiles, in parts, more outputs than a block", {.batch = 2,
                                                                             .parts = 2,
                                                                             .groups = 2,
                                                                             .x = {32, 6},
                                                                             .dy = {160, 7},
                                                                             .kernel = {3},
                                                                             .before = {2},
                                                                             .dilation = {2}}),
      sample("few channels, strides, more outputs than two blocks of columns", {.batch = 3,
                                                                                .parts = 2,
                                                                                .x = {3, 7, 10},
                                                                                .dy = {35, 4, 5},
                                                                                .kernel = {5, 3},
                                                                                .stride = {2, 2},
                                                                                .before = {2, 1}}),
      sample("few channels, cropped, strides beyond the kernel", {.x = {3, 9, 10},
                                                                  .dy = {2, 2, 2},
                                                                  .kernel = {2, 2},
                                                                  .stride = {3, 4},
                                                                  .before = {-2, -1}}),
      sample("many channels, strides, dilated", {.x = {17, 7, 6},
                                                 .dy = {18, 4, 2},
                                                 .kernel = {3, 2},
                                                 .stride = {2, 3},
                                                 .before = {1, 0},
                                                 .dilation = {1, 2}}),
      sample(
          "more lines than are multiplied at a time, a column beyond a block",
          {.batch = 1, .x = {16, 20, 16}, .dy = {17, 20, 16}, .kernel = {3, 3}, .before = {1, 1}}),
      sample("no images: zeros", {.batch = 0, .x = {2, 4}, .dy = {3, 4}, .kernel = {1}}),
  };
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const Extents plain{.x = {4, 5}, .dy = {6, 5}, .kernel = {3}};
  Extents parts = plain, grouped = plain, empty = plain;
  parts.parts = 3;
  grouped.groups = 4;
  empty.kernel = {0};
  return {
      {"other images",
       {f32({2, 4, 5}), f32({3, 6, 5})},
       attributes(plain),
       "x f32[2,4,5] and dy f32[3,6,5] differ in their images"},
      {"more parts than images",
       {f32({2, 4, 5}), f32({2, 6, 5})},
       attributes(parts),
       "parts 3 is not between 1 and the images of x f32[2,4,5]"},
      {"groups that do not divide",
       {f32({2, 4, 5}), f32({2, 6, 5})},
       attributes(grouped),
       "do not divide into 4 groups"},
      {"no kernel",
       {f32({2, 4, 5}), f32({2, 6, 5})},
       attributes(empty),
       "kernel 0 is not between 1 and"},
      {"dy of another rank",
       {f32({2, 4, 5}), f32({2, 6})},
       attributes(plain),
       "needs dy of rank 3, got f32[2,6]"},
      {"no spatial axes",
       {f32({2, 4}), f32({2, 6})},
       attributes(plain),
       "one to three spatial axes"},
      {"two dtypes",
       {f32({2, 4, 5}), {DType::bf16, {2, 6, 5}}},
       attributes(plain),
       "differ in dtype"},
  };
}

const OpRegistrar convolution_weight_gradient_op(OpDef{
    .name = "convolution_weight_gradient",
    .summary =
        "sums over images and positions of inputs times result gradients, by kernel position",
    .tags = Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = error_samples,
});

}  // namespace

Tensor convolution_weight_sum(Tensor x, Tensor dy, const ConvNumbers& numbers,
                              const std::vector<int64_t>& kernel) {
  // Parts give all threads work where the weights alone are too few to share out; their bytes stay below those of a
  // cache. They depend on shapes alone, and so do the bits.
  constexpr int64_t kMostParts = 16, kMostBytes = 4 << 20;
  int64_t bytes = dy.dim(1) * x.dim(1) / numbers.groups * 4;
  for (int64_t extent : kernel) bytes *= extent;
  const int64_t most = std::clamp<int64_t>(kMostBytes / std::max<int64_t>(1, bytes), 1, kMostParts);
  const int64_t parts = std::clamp<int64_t>(x.dim(0), 1, most);
  const Tensor sums = apply("convolution_weight_gradient", {x, dy},
                            {{"stride", numbers.stride},
                             {"before", numbers.before},
                             {"dilation", numbers.dilation},
                             {"groups", numbers.groups},
                             {"kernel", kernel},
                             {"parts", parts},
                             {"wide", false}},
                            SourceLoc::here());
  return parts == 1 ? squeeze(sums, 0) : reduce_sum(sums, {0});
}

}  // namespace fullbore
