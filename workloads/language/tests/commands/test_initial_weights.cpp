#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class InitialWeightsTest : public JobTest {
 protected:
  void expect_refusal(const CommandResult& result, int code, const std::string& message) const {
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
};

TEST_F(InitialWeightsTest, HeadsOfAttentionMeanSomethingThoughNoShapeTells) {
  ASSERT_EQ(train({"run.dir=first"}).exit_code, 0);
  const std::vector<std::string> same = {"run.dir=second", "model.initialize_from=first"};
  EXPECT_EQ(train(same).exit_code, 0);
  std::vector<std::string> heads = {"run.dir=heads", "model.initialize_from=first",
                                    "model.heads=4"};
  expect_refusal(train(heads), 2, "model.heads is 4, there 2");
  const CommandResult shorter =
      train({"run.dir=shorter", "model.initialize_from=first", "model.context=4"});
  EXPECT_EQ(shorter.exit_code, 0) << shorter.err;
  EXPECT_THAT(shorter.err, HasSubstr("position_embedding.weight: 4 of 4 rows"));
  expect_refusal(train({"run.dir=longer", "model.initialize_from=first", "model.context=12"}), 2,
                 "position_embedding.weight: f32[12,16] here, f32[8,16] in the checkpoint");
}

TEST_F(InitialWeightsTest, SmoothingIsInNoPerplexityOfTheLines) {
  const CommandResult trained = train({"run.dir=run", "train.label_smoothing=0.1"});
  EXPECT_THAT(trained.err, HasSubstr("  ppl -/"));
}

}  // namespace
}  // namespace fullbore
