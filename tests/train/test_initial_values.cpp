#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "fullbore/device/registry.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/train/step_function.h"

namespace fullbore {
namespace {

/// One entry for each kind of initializer, in sizes that no number of workers divides.
TracedStep step_of_every_kind() {
  TracedStep step;
  Graph graph;
  const auto add = [&](const char* name, DType dtype, Shape shape, const Initializer& initializer) {
    graph.add_input(name, Role::parameter, {dtype, std::move(shape)});
    step.initializers.emplace(name, initializer);
  };
  Initializer squared = Initializer::uniform(-1, 3);
  squared.then = [](double value) { return value * value; };
  add("normal", DType::f32, {1009, 67}, Initializer::normal(0.02, 0.5));
  add("normal, wide", DType::f64, {100003}, Initializer::normal(2));
  add("uniform", DType::f32, {70001}, squared);
  add("ones", DType::f32, {4099}, Initializer::ones());
  add("given", DType::f32, {5}, Initializer::given({1, 2, 3, 4, 5}));
  add("orthogonal", DType::f32, {37, 61}, Initializer::orthogonal(1.4));
  add("zeros", DType::f32, {4099}, Initializer::zeros());
  add("moment", DType::f32, {1009, 67}, Initializer::zeros());
  graph.add_input(ema_name("normal"), Role::ema, {DType::f32, {1009, 67}});
  graph.add_input("random.seed", Role::control, {DType::i64, {}});
  step.graph = std::move(graph);
  return step;
}

std::vector<std::vector<std::byte>> values_on(int threads, uint64_t seed) {
  const TracedStep step = step_of_every_kind();
  const State state = initial_state(step, seed, open_device("cpu", threads));
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < state.entries().size(); ++i) {
    all.emplace_back(static_cast<size_t>(state.entries()[i].type.bytes()));
    state.read(static_cast<int>(i), all.back());
  }
  return all;
}

TEST(InitialValues, AreTheSameBitsOnAnyNumberOfThreads) {
  const auto expected = values_on(1, 11);
  for (const int threads : {2, 3, 4}) EXPECT_EQ(values_on(threads, 11), expected) << threads;
  EXPECT_EQ(expected[8], expected[0]) << "its average";
  const auto others = values_on(4, 12);
  EXPECT_NE(others[0], expected[0]) << "of another seed";
  EXPECT_NE(others.back(), expected.back()) << "the seed itself";
}

}  // namespace
}  // namespace fullbore
