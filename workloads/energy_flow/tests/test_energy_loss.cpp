// The loss as a step sees it: what is trained, and how much there is of it.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fullbore/train/step_function.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"

namespace fullbore::energy_flow {
namespace {

Config config_of(const std::string& rest) {
  return parse_config("{model: {name: energy_flow}, " + rest + "}", "x");
}

std::map<std::string, int64_t> elements_by_part(const Config& config, bool collector) {
  Config whole = config;
  if (collector) whole.get<EnergyKeys>().loss.collector_weight = 1;
  const TracedStep step = trace_evaluation(
      energy_loss(whole),
      PairBatches::fields_of(whole.train.batch_size, energy_keys(whole).model.embedding_width, 0));
  std::map<std::string, int64_t> found;
  for (const Graph::Input& input : step.graph.inputs()) {
    if (input.role != Role::parameter && input.role != Role::frozen) continue;
    std::string part = input.name.substr(0, input.name.find('.'));
    if (part == "carrier") part = input.name.find("gru") != std::string::npos ? "gru" : "heads";
    found[part] += step.graph.type(input.value).elements();
  }
  return found;
}

struct Sizes {
  const char* name;
  const char* keys;
  int64_t mapper, collector, gru, relative_heads, absolute_heads;
};

// A14, of section 2.11 of the specification.
TEST(EnergyLoss, HasTheParametersOfItsSpecification) {
  const Sizes all[] = {
      {"debug", "width: 20, height: 20", 1'580'002, 1'580'368, 642'816, 49'668, 66'438},
      {"rtx", "width: 50, height: 50", 41'375'002, 41'373'268, 4'041'216, 164'612, 198'022},
      {"exp28", "width: 28, height: 28", 4'903'138, 4'903'120, 4'041'216, 164'612, 198'022},
      {"full", "width: 100, height: 100", 615'500'002, 615'490'768, 15'946'752, 591'108, 657'798}};
  for (const Sizes& sizes : all) {
    const std::string name = sizes.name;
    for (const char* mode : {"relative", "absolute"}) {
      Config config = config_of(std::string("train: {batch_size: 1}, lattice: {mode: ") + mode +
                                ", spawn_threshold: 0.6, " + sizes.keys + "}");
      EnergyKeys::Model& model = config.get<EnergyKeys>().model;
      model.carrier_hidden = name == "debug" ? 256 : name == "full" ? 1024 : 512;
      model.carrier_layers = name == "debug" ? 2 : 3;
      std::map<std::string, int64_t> found = elements_by_part(config, true);
      EXPECT_EQ(found["mapper"], sizes.mapper) << name;
      EXPECT_EQ(found["collector"], sizes.collector) << name;
      EXPECT_EQ(found["neuron"], 3'468) << name;
      EXPECT_EQ(found["gru"], sizes.gru) << name;
      EXPECT_EQ(found["heads"],
                mode == std::string("relative") ? sizes.relative_heads : sizes.absolute_heads)
          << name << " " << mode;
    }
  }
}

TEST(EnergyLoss, TheMapperStaysAsItIsDrawnUnlessItIsTrained) {
  for (const bool trained : {false, true}) {
    Config config = config_of("train: {batch_size: 2}, lattice: {width: 4, height: 4}");
    config.get<EnergyKeys>().model.train_mapper = trained;
    const TracedStep step =
        trace_training_step(energy_loss(config), PairBatches::fields_of(2, 768, 0), {});
    int mappers = 0;
    for (const Graph::Input& input : step.graph.inputs()) {
      if (!input.name.starts_with("mapper.")) continue;
      if (input.role == Role::moment) {
        EXPECT_TRUE(trained) << input.name;
        continue;
      }
      ++mappers;
      EXPECT_EQ(input.role, trained ? Role::parameter : Role::frozen) << input.name;
    }
    EXPECT_EQ(mappers, 13);
  }
}

}  // namespace
}  // namespace fullbore::energy_flow
