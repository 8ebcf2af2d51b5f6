#include "fullbore/ops/winograd_convolution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/convolution_geometry.h"
#include "fullbore/ops/rules.h"

/// A convolution of 3 x 3 whose outputs are made in tiles of 2 x 2 by Winograd's minimal filtering, F(2 x 2, 3 x 3): of 4 x 4
/// inputs d and a kernel g, y = A^T [(G g G^T) * (B^T d B)] A, where * multiplies element by element. Channels are summed
/// between, by one matmul for each of the 16 elements: 16 multiplications where the sum as it is written takes 36.
/// Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks". Made by passes (winograd_convolutions), not by
/// models: results differ from `convolution`'s by rounding, which sees all inputs of a tile, and what is not finite among
/// these reaches all its outputs.
namespace fullbore {
namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kInputTile = kWinogradTile + 2;

int64_t tiles_of(const ConvAxis& axis) { return (axis.output + kWinogradTile - 1) / kWinogradTile; }

// Operands and attributes as of convolution.
std::vector<TensorType> infer(const OpCall& call) {
  std::vector<TensorType> results =
      get_op("convolution").infer({call.op, call.inputs, call.attributes, call.body, call.loc});
  if (!is_winograd_convolution(ConvGeometry::of_convolution(call.inputs[0].shape,
                                                            call.inputs[1].shape, call.attributes)))
    call.fail("needs a kernel of 3 x 3 without strides and dilations, got weight " +
              call.inputs[1].text());
  return results;
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  return {apply("convolution", {call.inputs[0], call.inputs[1]}, call.attributes, call.loc)};
}

Cost cost(const CostCall& call) {
  Cost total = get_op("convolution").cost(call);
  total.flops = winograd_flops(
      ConvGeometry::of_convolution(call.inputs[0].shape, call.inputs[1].shape, call.attributes));
  return total;
}

// The sum over channels of what the tile's inputs and the kernel amount to: the bound of every element between.
double magnitude_of_tile(const ConvGeometry& g, const Literal& x, const Literal& weight, int64_t n,
                         int64_t o, int64_t row, int64_t column) {
  const ConvAxis &down = g.axes[0], &across = g.axes[1];
  const int64_t inner = g.group_inputs(), first = o / g.group_outputs() * inner;
  double sum = 0;
  for (int64_t c = 0; c < inner; ++c) {
    double inputs = 0, kernel = 0;
    for (int64_t i = 0; i < kInputTile; ++i)
      for (int64_t j = 0; j < kInputTile; ++j) {
        const int64_t a = down.read(row + i, 0), b = across.read(column + j, 0);
        if (a >= 0 && b >= 0)
          inputs +=
              std::abs(x.at(((n * g.inputs + first + c) * down.input + a) * across.input + b));
      }
    for (int64_t k = 0; k < 9; ++k) kernel += std::abs(weight.at((o * 9 + k) * inner + c));
    sum += inputs * kernel;
  }
  return sum;
}

void reference(ReferenceCall& call) {
  get_op("convolution").reference(call);
  const Literal &x = *call.inputs[0], &weight = *call.inputs[1];
  const ConvGeometry g = ConvGeometry::of_convolution(x.shape(), weight.shape(), call.attributes);
  const ConvAxis &down = g.axes[0], &across = g.axes[1];
  constexpr double kTransforms = 8;  // roundings before and after the sum over channels
  const double roundings = static_cast<double>(g.group_inputs()) + kTransforms;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.outputs; ++o)
      for (int64_t row = 0; row < down.output; row += kWinogradTile)
        for (int64_t column = 0; column < across.output; column += kWinogradTile) {
          const double magnitude = magnitude_of_tile(g, x, weight, n, o, row, column);
          for (int64_t i = row; i < std::min(row + kWinogradTile, down.output); ++i)
            for (int64_t j = column; j < std::min(column + kWinogradTile, across.output); ++j)
              call.magnitudes[0][static_cast<size_t>(
                  ((n * g.outputs + o) * down.output + i) * across.output + j)] =
                  roundings * magnitude;
        }
}

Attributes attributes(int64_t groups, Numbers before, Numbers after, bool wide = false) {
  const Numbers ones{1, 1};
  return {{"stride", ones},   {"before", before},       {"after", after}, {"dilation", ones},
          {"groups", groups}, {"input_dilation", ones}, {"wide", wide}};
}

struct Extents {
  int64_t batch = 2, groups = 1;
  Shape x = {}, weight = {};  ///< x [C,*S], weight [O,3,3,C/groups]
  Numbers before = {1, 1}, after = {1, 1};
  bool wide = false;
};

Sample sample(const char* why, const Extents& e) {
  return {.why = why,
          .inputs = {SampleInput::normal({DType::f32, e.x.inserted(0, e.batch)}),
                     SampleInput::normal({DType::f32, e.weight})},
          .attributes = attributes(e.groups, e.before, e.after, e.wide)};
}

std::vector<Sample> samples() {
  return {
      sample("odd extents", {.x = {5, 7, 9}, .weight = {3, 3, 3, 5}}),
      sample("tiles that fill vectors", {.x = {16, 8, 32}, .weight = {16, 3, 3, 16}}),
      sample("rows of half a vector", {.batch = 5, .x = {17, 8, 8}, .weight = {9, 3, 3, 17}}),
      sample("one tile, several images", {.batch = 7, .x = {3, 2, 2}, .weight = {4, 3, 3, 3}}),
      sample("tiles that do not fill a vector",
             {.batch = 1, .x = {3, 2, 10}, .weight = {4, 3, 3, 3}}),
      sample("images of a vector and a half", {.batch = 3, .x = {5, 6, 8}, .weight = {3, 3, 3, 5}}),
      sample("groups", {.groups = 2, .x = {8, 6, 6}, .weight = {6, 3, 3, 4}}),
      sample("no padding",
             {.x = {4, 5, 6}, .weight = {2, 3, 3, 4}, .before = {0, 0}, .after = {0, 0}}),
      sample("padded unevenly, and more than the kernel reaches",
             {.x = {4, 5, 6}, .weight = {2, 3, 3, 4}, .before = {3, 0}, .after = {1, 4}}),
      sample("crops",
             {.x = {3, 9, 8}, .weight = {2, 3, 3, 3}, .before = {-1, -2}, .after = {1, -1}}),
      sample(
          "one output",
          {.batch = 1, .x = {2, 3, 3}, .weight = {1, 3, 3, 2}, .before = {0, 0}, .after = {0, 0}}),
      sample("wide results", {.x = {4, 6, 16}, .weight = {5, 3, 3, 4}, .wide = true}),
      sample("more channels and outputs than a block",
             {.batch = 1, .x = {40, 34, 18}, .weight = {70, 3, 3, 40}}),
      sample("no images", {.batch = 0, .x = {3, 5, 5}, .weight = {2, 3, 3, 3}}),
      sample("no channels", {.x = {0, 5, 5}, .weight = {2, 3, 3, 0}}),
  };
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {2, 4, 5, 5}};
  Attributes strided = attributes(1, {1, 1}, {1, 1});
  strided.set("stride", Numbers{2, 1});
  return {{"a kernel of one element",
           {x, {DType::f32, {6, 1, 1, 4}}},
           attributes(1, {0, 0}, {0, 0}),
           "needs a kernel of 3 x 3 without strides and dilations, got weight f32[6,1,1,4]"},
          {"strides",
           {x, {DType::f32, {6, 3, 3, 4}}},
           strided,
           "needs a kernel of 3 x 3 without strides"},
          {"other channels",
           {x, {DType::f32, {6, 3, 3, 3}}},
           attributes(1, {1, 1}, {1, 1}),
           "4 channels of x f32[2,4,5,5] are not 1 groups of the 3"}};
}

const OpRegistrar registrar(OpDef{
    .name = "winograd_convolution",
    .summary = "a convolution of 3 x 3 in tiles of 2 x 2 outputs, by Winograd's minimal filtering",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

bool is_winograd_convolution(const ConvGeometry& g) {
  return g.axes.size() == 2 && std::ranges::all_of(g.axes, [](const ConvAxis& axis) {
           return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1 &&
                  axis.input_dilation == 1;
         });
}

double winograd_flops(const ConvGeometry& g) {
  constexpr double kProducts = 16, kInputAdditions = 32, kOutputAdditions = 24, kWeightFlops = 42;
  const double tiles = static_cast<double>(g.batch * tiles_of(g.axes[0]) * tiles_of(g.axes[1]));
  const auto inputs = static_cast<double>(g.inputs), outputs = static_cast<double>(g.outputs);
  const auto inner = static_cast<double>(g.group_inputs());
  return tiles * (2 * kProducts * outputs * inner + kInputAdditions * inputs +
                  kOutputAdditions * outputs) +
         kWeightFlops * outputs * inner;
}

}  // namespace fullbore
