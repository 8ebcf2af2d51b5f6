#include "fullbore/text/text_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ir/print.h"
#include "fullbore/text/text_keys.h"
#include "tests/support/evaluate.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

int64_t parameters_of(const Config& config, int64_t tokens) {
  int64_t count = 0;
  const TracedStep step = trace_training_step(model_loss(config, tokens), batch_fields(config),
                                              optimizer_options(config));
  for (const StateEntry& entry : state_entries(step.graph))
    if (entry.role == Role::parameter) count += entry.type.elements();
  return count;
}

// Counted in the traced step: nothing is allocated.
TEST(LanguageModel, Gpt2124mHasAsManyParametersAsGpt2) {
  const Config config = load_config(testing::source_folder() + "/configs/gpt2-124m.yaml");
  EXPECT_EQ(parameters_of(config, text_keys(config).model.vocabulary), 124'439'808);
  EXPECT_EQ(parameters_of(config, 50), 124'439'808) << "whatever the text has";
}

TEST(LanguageModel, TheTokenTableHasAsManyRowsAsTokensUnlessToldOtherwise) {
  Config config;
  EXPECT_EQ(parameters_of(config, 7) - parameters_of(config, 5), 2 * text_keys(config).model.width);
  text_keys(config).model.vocabulary = 64;
  EXPECT_EQ(parameters_of(config, 7), parameters_of(config, 64));
  EXPECT_THAT(usage_error([&] { parameters_of(config, 65); }),
              HasSubstr("model.vocabulary is 64, the text has 65 distinct tokens"));
}

TEST(LanguageModel, ContinuesTextsWithKeysAndValuesInItsPrecision) {
  Config config;
  for (const auto& [precision, dtype] :
       {std::pair{"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}}) {
    config.engine.precision = precision;
    EXPECT_EQ(rollout_sizes(config, 65, 4).pool_dtype, dtype);
  }
}

// What helps learning is no part of what is measured.
TEST(LanguageModel, SmoothingAndZLossAreOfTrainingAlone) {
  const auto graphs = [](const Config& config) {
    const LossFunction loss = model_loss(config, 65);
    return std::pair(
        print(trace_training_step(loss, batch_fields(config), optimizer_options(config)).graph),
        print(trace_evaluation(loss, batch_fields(config)).graph));
  };
  const auto [training, evaluation] = graphs({});
  Config smoothed, normalised;
  smoothed.train.label_smoothing = 0.1;
  text_keys(normalised).train.z_loss = 0.1;
  for (const Config& config : {smoothed, normalised}) {
    EXPECT_NE(graphs(config).first, training);
    EXPECT_EQ(graphs(config).second, evaluation);
  }
}

TEST(LanguageModel, TheHeadIsFusedWhereItsLogitsAreLargeOrAsAskedFor) {
  const auto is_fused = [](int64_t tokens, const std::string& head) {
    Config config;
    text_keys(config).engine.fused_head = head;
    config.train.batch_size = 48;  // 3072 rows, of 512 to a block
    const TracedStep step = trace_evaluation(model_loss(config, tokens), batch_fields(config));
    return print(step.graph).find("linear_cross_entropy") != std::string::npos;
  };
  EXPECT_FALSE(is_fused(65, "auto"));
  EXPECT_TRUE(is_fused(50257, "auto"));
  EXPECT_TRUE(is_fused(65, "on"));
  EXPECT_FALSE(is_fused(50257, "off"));
}

TEST(LanguageModel, ParameterGroupsReachTheOptimizer) {
  Config config;
  config.optim.groups = {"match=*norm* weight_decay=0.5 learning_rate_multiplier=2"};
  const OptimizerOptions options = optimizer_options(config);
  ASSERT_EQ(options.groups.size(), 1U);
  EXPECT_EQ(options.groups[0].match, "*norm*");
  config.optim.groups = {"match=*nrom*"};
  EXPECT_THAT(usage_error([&] { parameters_of(config, 5); }),
              HasSubstr("'*nrom*' matches no parameter. The nearest is '"));
}

}  // namespace
}  // namespace fullbore
