// Training steps of a small lattice against PyTorch: golden/energy_steps.py.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "tests/support/paths.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;
using Json = nlohmann::json;

constexpr uint64_t kInputs = 1000;  // ordinals of a step's batch
constexpr uint64_t kTargets = 2000;

// In [-1, 1). Steele, Lea, Flood 2014; the same formulas as golden/energy_steps.py.
double uniform(uint64_t ordinal, uint64_t index) {
  uint64_t z = (ordinal << 32) + index + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return 2 * static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 - 1;
}

double element(const std::string& name, const Shape& shape, double u) {
  if (shape.rank() == 2) return 1.5 * u * std::sqrt(3.0 / static_cast<double>(shape[1]));
  const bool scale = name.find(".norms.") != std::string::npos && name.ends_with("weight");
  return scale || name == "mapper.gain" ? 1 + 0.1 * u : 0.3 * u;
}

void fill(const Graph& graph, State& state) {
  std::map<std::string, Shape> sorted;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::parameter || input.role == Role::frozen)
      sorted.emplace(input.name, graph.type(input.value).shape);
  uint64_t ordinal = 0;
  for (const auto& [name, shape] : sorted) {
    Edited<float> values(state, name);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(element(name, shape, uniform(ordinal, i)));
    ++ordinal;
  }
}

Config config_of(const Json& golden, int64_t tile_rows) {
  Config config = parse_config("{model: {name: energy_flow}}", "golden");
  EnergyKeys& keys = config.get<EnergyKeys>();
  const Json& lattice = golden["lattice"];
  const Json& sizes = golden["sizes"];
  keys.lattice.width = lattice["width"];
  keys.lattice.height = lattice["height"];
  keys.lattice.depth = lattice["depth"];
  keys.lattice.capacity = lattice["capacity"];
  keys.lattice.spawn_threshold = lattice["spawn_threshold"];
  keys.lattice.most_spawned = lattice["most_spawned"];
  keys.lattice.noise = keys.lattice.final_noise = 0;
  keys.lattice.project_on_stop = lattice["project_on_stop"];
  keys.lattice.early_stop = lattice["early_stop"];
  keys.lattice.stop_threshold = lattice["stop_threshold"];
  keys.lattice.stop_patience = lattice["stop_patience"];
  keys.lattice.stop_min_steps = lattice["stop_min_steps"];
  keys.lattice.tile_rows = tile_rows;
  keys.model.embedding_width = sizes["embedding"];
  keys.model.neuron_hidden = sizes["neuron_hidden"];
  keys.model.neuron_outputs = sizes["neuron_outputs"];
  keys.model.carrier_hidden = sizes["carrier_hidden"];
  keys.model.carrier_layers = sizes["carrier_layers"];
  keys.model.head_hidden = sizes["head_hidden"];
  config.train.batch_size = golden["batch"];
  return config;
}

OptimizerOptions optimizer_of(const Json& golden) {
  const double rate = golden["rate"];
  OptimizerOptions options;
  options.schedule = {"cosine", rate, rate, 0, 1};
  options.beta1 = golden["beta1"];
  options.beta2 = golden["beta2"];
  options.epsilon = golden["epsilon"];
  options.weight_decay = golden["decay"];
  options.decays_all = true;
  options.clip_norm = golden["clip"];
  return options;
}

/// Buffers of a batch, aligned as programs want them.
class Batch {
 public:
  Batch(int64_t samples, int64_t width) : size_(static_cast<size_t>(samples * width)) {
    for (float& setting : settings_) setting = 0;
    settings_[0] = 1;  // of displacements
  }
  std::array<const void*, 6> fill(uint64_t step) {
    for (size_t i = 0; i < size_; ++i) {
      inputs_[i] = static_cast<float>(uniform(kInputs + step, i));
      targets_[i] = static_cast<float>(uniform(kTargets + step, i));
    }
    return {inputs_.data(), targets_.data(), &settings_[0],
            &settings_[16], &settings_[32],  &settings_[48]};
  }

 private:
  size_t size_;
  alignas(64) std::array<float, 64> inputs_ = {};
  alignas(64) std::array<float, 64> targets_ = {};
  alignas(64) std::array<float, 64> settings_;
};

class GoldenSteps : public ::testing::TestWithParam<int64_t> {};

// They stop after four to six steps of six, and drop children for which there is no room.
TEST_P(GoldenSteps, EqualPyTorch) {
  const Json golden = Json::parse(
      read_file(testing::source_folder() + "/workloads/energy_flow/tests/golden/steps.json")
          .value());
  const Config config = config_of(golden, GetParam());
  const int64_t samples = config.train.batch_size;
  const int64_t width = energy_keys(config).model.embedding_width;
  const TracedStep step =
      trace_training_step(energy_loss(config), PairBatches::fields_of(samples, width, 0),
                          optimizer_of(golden["optimiser"]));
  State state = initial_state(step, 1, cpu_device(2));
  fill(step.graph, state);
  Program program = Program::compile(step.graph, state, {});
  Batch batch(samples, width);
  uint64_t made = 0;
  for (const Json& expected : golden["steps"]) {
    SCOPED_TRACE(made);
    program.run(batch.fill(made++));
    const double loss = expected["loss"], norm = expected["gradient_norm"];
    EXPECT_NEAR(program.scalar("loss"), loss, 1e-5 * loss);
    EXPECT_NEAR(program.scalar("gradient_norm"), norm, 1e-3 * norm);
    for (const char* count : {"steps", "created", "dropped"})
      EXPECT_EQ(program.scalar(count), expected[count].get<double>()) << count;
  }
  EXPECT_EQ(made, 5U);
}

INSTANTIATE_TEST_SUITE_P(AllRowsAndTiles, GoldenSteps, ::testing::Values(0, 16));

}  // namespace
}  // namespace fullbore::energy_flow
