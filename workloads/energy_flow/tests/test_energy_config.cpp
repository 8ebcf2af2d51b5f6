#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/train/config_schema.h"
#include "tests/support/configs.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

using testing::config_refusal;
using testing::expect_shows_its_keys;
using ::testing::HasSubstr;

Config config_of(const std::string& lattice) {
  return parse_config("{model: {name: energy_flow}, lattice: {" + lattice + "}}", "x");
}

TEST(EnergyConfig, AreShownWhole) {
  for (const char* name : {"debug", "exp0", "rtx", "exp28", "full"})
    expect_shows_its_keys(std::string("energy-") + name);
}

TEST(EnergyConfig, IsReadBack) {
  const Config config = config_of("mode: absolute, width: 30, noise: 0.5, final_noise: 0.3");
  EXPECT_EQ(parse_config(config_yaml(config), "resolved"), config);
  EXPECT_EQ(parse_config(config_json(config), "config.json"), config);
}

TEST(EnergyConfig, WhatCannotBeIsNamed) {
  const std::string model = "model: {name: energy_flow}\n";
  EXPECT_THAT(config_refusal(model + "train: {batch_size: 16}\nlattice: {capacity: 6399}"),
              HasSubstr("lattice.capacity 6399 (configs/x.yaml:3) is too small: 16 samples a "
                        "microbatch begin with 6400 flows; set it to 6400 or more, or divide the "
                        "batch by a larger engine.accumulate 1 (default)"));
  EXPECT_EQ(config_refusal(model + "train: {batch_size: 16}\nlattice: {capacity: 6400}"), "");
  EXPECT_EQ(config_refusal(model + "train: {batch_size: 32}\nengine: {accumulate: 2}\n"
                                   "lattice: {capacity: 6400}"),
            "");
  EXPECT_EQ(config_refusal(model + "lattice: {capacity: 10, inject_overflow: truncate}"), "");
  EXPECT_THAT(config_refusal(model + "lattice: {stop_threshold: 1.5}"),
              HasSubstr("lattice.stop_threshold"));
  EXPECT_THAT(config_refusal(model + "lattice: {depth: 7}"),
              HasSubstr("lattice.depth 7 (configs/x.yaml:2) is odd"));
  EXPECT_EQ(config_refusal(model + "lattice: {depth: 7, mode: absolute, spawn_threshold: 0.6}"),
            "");
  EXPECT_THAT(
      config_refusal(model + "lattice: {mode: absolute, spawn_threshold: 1}"),
      HasSubstr("lattice.spawn_threshold 1 (configs/x.yaml:2) is of a gate that is below 1"));
  EXPECT_THAT(config_refusal(model + "lattice: {hight: 7}"),
              HasSubstr("Did you mean 'lattice.height'?"));
  EXPECT_THAT(config_refusal("lattice: {height: 7}"), HasSubstr("energy_flow"))
      << "another model is the default, or none";
}

// Section 4.3 of its specification: the factor of displacements, and what pushes flows through.
TEST(EnergyConfig, TheCurriculumGoesByTheOptimisersStep) {
  const Config relative = config_of("displacement_scale: 2.6, least_displacement_scale: 1");
  EXPECT_DOUBLE_EQ(step_settings(relative, 0).displacement_scale, 2.6);
  EXPECT_DOUBLE_EQ(step_settings(relative, 99).displacement_scale, 2.6);
  EXPECT_DOUBLE_EQ(step_settings(relative, 109).displacement_scale, 2.6);
  EXPECT_DOUBLE_EQ(step_settings(relative, 110).displacement_scale, 2.6 * 0.9);
  EXPECT_DOUBLE_EQ(step_settings(relative, 129).displacement_scale, 2.6 * 0.9 * 0.9);
  EXPECT_DOUBLE_EQ(step_settings(relative, 1000).displacement_scale, 1);
  EXPECT_DOUBLE_EQ(final_settings(relative).displacement_scale, 1);

  const Config absolute = config_of(
      "mode: absolute, spawn_threshold: 0.6, z_bias: 1.8, z_bias_per_age: 0.1, "
      "curriculum_steps: 3000, noise: 0.5, final_noise: 0.3");
  EXPECT_DOUBLE_EQ(step_settings(absolute, 0).z_bias, 1.8);
  EXPECT_DOUBLE_EQ(step_settings(absolute, 1500).z_bias, 0.9);
  EXPECT_DOUBLE_EQ(step_settings(absolute, 1500).z_bias_per_age, 0.05);
  EXPECT_DOUBLE_EQ(step_settings(absolute, 1500).noise, 0.4);
  EXPECT_DOUBLE_EQ(step_settings(absolute, 4000).z_bias, 0);
  EXPECT_DOUBLE_EQ(step_settings(absolute, 4000).noise, 0.3);
}

}  // namespace
}  // namespace fullbore::energy_flow
