// Which kernel a convolution gets. That each of them is right is shown by the op's samples (test_cpu_ops.cpp).
#include "fullbore/ops/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/registry.h"
#include "op_check.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Layer {
  Shape x, weight;
  int64_t stride = 1;
};

Graph graph_of(const Layer& layer, DType dtype, bool weight_gradient) {
  GraphBuilder builder("layer");
  const Tensor x = builder.input("x", Role::batch, {dtype, layer.x});
  const Tensor weight = builder.input("weight", Role::batch, {dtype, layer.weight});
  const Tensor y = convolution(x, weight, {}, {.stride = layer.stride, .padding = 1});
  if (!weight_gradient) {
    builder.output("y", y);
    return builder.take();
  }
  std::vector<int64_t> axes;
  for (int axis = 0; axis < y.rank(); ++axis) axes.push_back(axis);
  const Tensor wanted[] = {weight};
  builder.output("dweight", gradient(reduce_sum(y, axes), wanted)[0]);
  return builder.take();
}

// Of the last node of that op.
std::string kernel_of(const Graph& graph, std::string_view op) {
  const auto compiler = open_device("cpu")->compiler();
  std::string description;
  for (const Node& node : graph.nodes())
    if (node.op->name == op) description = compiler->compile(graph, node, 2)->description();
  compiler->finish();
  return description;
}

// First layers and strided ones were packed column by column, for each element of the kernel.
TEST(Convolution, StridesFewChannelsAndThreeAxesGoThroughPlanes) {
  const Layer layers[] = {
      {{2, 64, 14, 14}, {64, 64, 3, 3}},     {{2, 64, 14, 14}, {128, 64, 3, 3}, 2},
      {{2, 64, 14, 14}, {128, 64, 1, 1}, 2}, {{2, 3, 32, 32}, {64, 3, 7, 7}, 2},
      {{2, 3, 32, 32}, {32, 3, 3, 3}},       {{2, 1, 28, 28}, {32, 1, 5, 5}, 2},
      {{2, 16, 4, 8, 8}, {32, 16, 3, 3, 3}}, {{2, 80, 100}, {64, 80, 3}, 2}};
  for (const Layer& layer : layers)
    for (const DType dtype : {DType::f32, DType::bf16})
      EXPECT_THAT(kernel_of(graph_of(layer, dtype, false), "convolution"), HasSubstr("planes"));
}

TEST(Convolution, WeightGradientsOfFewNarrowChannelsJoinThem) {
  const Layer layers[] = {{{2, 3, 32, 32}, {64, 3, 7, 7}, 2},
                          {{2, 3, 32, 32}, {32, 3, 3, 3}},
                          {{2, 1, 28, 28}, {32, 1, 5, 5}, 2}};
  for (const Layer& layer : layers) {
    EXPECT_THAT(kernel_of(graph_of(layer, DType::bf16, true), "convolution_weight_gradient"),
                HasSubstr("few channels"));
    EXPECT_THAT(kernel_of(graph_of(layer, DType::f32, true), "convolution_weight_gradient"),
                Not(HasSubstr("few channels")));
  }
}

// Planes hold whole lines: of those that are long a worker's would take tens of megabytes.
TEST(Convolution, LongLinesOfFewChannelsAreCut) {
  const Layer layer{{1, 15, 280'000}, {1, 15, 1}};
  const Graph graph = graph_of(layer, DType::f32, false);
  EXPECT_THAT(kernel_of(graph, "convolution"), Not(HasSubstr("planes")));
  const Sample sample{.why = "long lines",
                      .inputs = {SampleInput::normal({DType::f32, layer.x}),
                                 SampleInput::normal({DType::f32, {1, 1, 15}})},
                      .attributes = graph.nodes().back().attributes};
  const std::shared_ptr<Device> device = open_device("cpu", 2);
  const auto compiler = device->compiler();
  const testing_support::OpCheck check(device->target(), *compiler, get_op("convolution"), sample,
                                       DType::f32, 1);
  compiler->finish();
  EXPECT_EQ(check.run(), "");
}

}  // namespace
}  // namespace fullbore
