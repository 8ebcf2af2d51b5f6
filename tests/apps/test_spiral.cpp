// The first losses of examples/spiral against PyTorch's, by the weights and batches of tools/golden/spiral.py. The example
// is the program of a user who runs steps by hand: its own functions are compiled here.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#define main spiral_main
#include "examples/spiral/spiral.cpp"
#undef main
#include "tests/support/paths.h"

namespace fullbore {
namespace {

// As golden/spiral.py has it.
std::vector<float> first_values(const std::string& name, int64_t elements) {
  uint64_t salt = 0;
  for (const char each : name) salt += static_cast<unsigned char>(each);
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i) {
    const auto index = static_cast<uint64_t>(i) + 1;
    const auto spread = static_cast<uint32_t>(index * 2654435761U + salt * 40503U);
    const double value = (static_cast<double>(spread) / 2147483648.0 - 1) / 8;
    values.push_back(static_cast<float>(value + (name.ends_with("norm.weight") ? 1 : 0)));
  }
  return values;
}

TEST(Spiral, HasTheLossesOfPyTorch) {
  OptimizerOptions optimizer;  // as train() has it
  optimizer.schedule = {.learning_rate = 3e-3, .warmup_steps = 20, .total_steps = 600};
  const TracedStep step = trace_training_step(loss, kFields, optimizer);
  State state = initial_state(step, kSeed, open_device("cpu"));
  int parameters = 0;
  for (const StateEntry& entry : state.entries()) {
    if (entry.role != Role::parameter) continue;
    state.write(entry.name, first_values(entry.name, entry.type.elements()));
    ++parameters;
  }
  EXPECT_EQ(parameters, 2 + 3 * 6 + 4);
  Program program = Program::compile(step.graph, state);

  std::ifstream file(testing::source_folder() + "/tests/apps/golden/spiral.json");
  const std::vector<double> theirs = nlohmann::json::parse(file).at("fp64");
  ASSERT_EQ(theirs.size(), 10U);
  EXPECT_LT(theirs[9], theirs[0]);
  for (size_t i = 0; i < theirs.size(); ++i) {
    const Batch batch(i);
    program.run(batch.fields());
    // Eight units in the last place of fp32, as test_examples.cpp has it.
    EXPECT_NEAR(program.scalar("loss"), theirs[i], 1e-6 * theirs[i]) << "step " << i;
  }
}

}  // namespace
}  // namespace fullbore
