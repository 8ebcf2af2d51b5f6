#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/plan.h"

/// Steps with moments, for plans that have these in the host's memory.
namespace fullbore::testing_support {

inline constexpr int64_t kMomentBytes = 64 * 16 * 4;

inline Plan planned(Graph graph, bool moments_in_host, bool late_reuse = true) {
  return make_plan(std::move(graph), *open_device("null")->compiler(),
                   {.workers = 1, .late_reuse = late_reuse, .moments_in_host = moments_in_host});
}

inline void update(GraphBuilder& builder, const std::string& state, const Tensor& value) {
  builder.output(state, value, builder.graph().find_input(state));
}

/// Layers whose activations, of `rows` rows for a parameter's one, are read again on the way back; behind all of them the
/// moments, as a norm of all gradients has it.
inline Graph step_of(int layers, int64_t rows = 8) {
  GraphBuilder builder("step");
  Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, 64, 16}});
  std::vector<Tensor> kept, weights, moments;
  for (int i = 0; i < layers; ++i) {
    weights.push_back(
        builder.input(fmt::format("w{}", i), Role::parameter, {DType::f32, {64, 16}}));
    moments.push_back(builder.input(fmt::format("m{}", i), Role::moment, {DType::f32, {64, 16}}));
    x = tanh(x * weights.back());
    kept.push_back(x);
  }
  std::vector<Tensor> gradients;
  Tensor back = exp(x);
  Tensor norm = reduce_sum(back, {0, 1, 2});
  for (int i = layers - 1; i >= 0; --i) {
    back = back * kept[static_cast<size_t>(i)];
    gradients.push_back(reduce_sum(back, {0}));
    norm = norm + reduce_sum(gradients.back(), {0, 1});
  }
  for (int i = 0; i < layers; ++i) {
    const auto at = static_cast<size_t>(i);
    const Tensor moment = 0.9 * moments[at] + gradients[static_cast<size_t>(layers - 1 - i)] * norm;
    update(builder, fmt::format("m{}", i), moment);
    update(builder, fmt::format("w{}", i), weights[at] - moment);
  }
  return builder.take();
}

/// Moments alone, each with nodes of its own that read and replace it: they may have one place, one after another.
inline Graph updates_of(int moments) {
  GraphBuilder builder("updates");
  for (int i = 0; i < moments; ++i) {
    const std::string name = fmt::format("m{}", i);
    const Tensor m = builder.input(name, Role::moment, {DType::f32, {64, 16}});
    update(builder, name, tanh(m * m));
  }
  return builder.take();
}

}  // namespace fullbore::testing_support
