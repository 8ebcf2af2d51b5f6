#include "workloads/peptide/recursive_model.h"

#include <gtest/gtest.h>

#include <map>

namespace fullbore::peptide {
namespace {

/// The model on B spectra of P peaks.
std::map<std::string, TensorType> parameters(const ModelSizes& sizes, int64_t& count) {
  Trace trace("model", true);
  const Spectra spectra{trace.batch("mz", {DType::f32, {2, 5}}),
                        trace.batch("intensity", {DType::f32, {2, 5}}),
                        trace.batch("peak_mask", {DType::boolean, {2, 5}}),
                        trace.batch("precursor_mass", {DType::f32, {2}}),
                        trace.batch("precursor_charge", {DType::i32, {2}})};
  recursive_model(trace, spectra, sizes);
  std::map<std::string, TensorType> result;
  count = 0;
  const Graph& graph = trace.builder().graph();
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::parameter && input.role != Role::frozen) continue;
    result[input.name] = graph.type(input.value);
    count += graph.type(input.value).elements();
  }
  return result;
}

TEST(RecursiveModel, HasTheParametersOfTheReference) {
  int64_t count = 0;
  const std::map<std::string, TensorType> all = parameters({}, count);
  EXPECT_EQ(count, 3'721'488);
  EXPECT_EQ(all.size(), 104U);
  std::map<std::string, int64_t> modules;
  for (const auto& [name, type] : all) {
    std::string module = name.substr(0, name.find('.'));
    if (name.starts_with("encoder.layers") || name.starts_with("decoder.layers"))
      module = name.substr(0, std::string("encoder.layers.0").size());
    modules[module] += type.elements();
  }
  EXPECT_EQ(modules["precursor_token"], 256);
  EXPECT_EQ(modules["peak_mass"], 224);
  EXPECT_EQ(modules["intensity"], 64 + 1056);
  EXPECT_EQ(modules["precursor_mass"], 240);
  EXPECT_EQ(modules["charge_embedding"], 112);
  EXPECT_EQ(modules["encoder.layers.0"], 789'760);
  EXPECT_EQ(modules["encoder.layers.1"], 789'760);
  EXPECT_EQ(modules["encoder"], 512);
  EXPECT_EQ(modules["latent_start"], 6400);
  EXPECT_EQ(modules["answer_start"], 600);
  EXPECT_EQ(modules["token_embedding"], 6144);
  EXPECT_EQ(modules["position_embedding"], 6400);
  EXPECT_EQ(modules["soft_embedding"], 6400);
  EXPECT_EQ(modules["decoder.layers.0"], 1'053'440);
  EXPECT_EQ(modules["decoder.layers.1"], 1'053'440);
  EXPECT_EQ(modules["decoder"], 512);
  EXPECT_EQ(modules["head"], 6168);
}

TEST(RecursiveModel, OtherConfigurationsHaveAsManyParametersAsTheReferences) {
  const auto total = [](const ModelSizes& sizes) {
    int64_t count = 0;
    parameters(sizes, count);
    return count;
  };
  EXPECT_EQ(total({.width = 128}), 944'144);
  ModelSizes late{.width = 384, .slots = 35, .heads = 6, .encoder_layers = 3, .decoder_layers = 3};
  EXPECT_EQ(total(late), 12'482'816);
  late.step_embedding = late.gated_answer = true;
  EXPECT_EQ(total(late), 12'495'128);
  EXPECT_EQ(total({.width = 64, .slots = 9, .heads = 2, .encoder_layers = 1, .decoder_layers = 1}),
            124'432);
}

}  // namespace
}  // namespace fullbore::peptide
