#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "fullbore/app/job_options.h"
#include "fullbore/train/step_runner.h"
#include "tests/support/paths.h"
#include "workloads/peptide/peptide_job.h"

namespace fullbore {
namespace {

/// Minutes of training: on demand.
class PeptideLearning : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FB_SLOW") == nullptr) GTEST_SKIP() << "set FB_SLOW=1 to train for minutes";
  }
};

Config config_of(const std::vector<std::string>& settings) {
  return load_config(testing::source_folder() + "/configs/peptide.yaml", settings);
}

// Sixteen spectra, again and again: what cannot learn these learns nothing.
TEST_F(PeptideLearning, OverfitsOneBatch) {
  const Config config = config_of({"model.hidden_dim=128", "train.batch_size=16",
                                   "train.curriculum=none", "optim.learning_rate=1e-3",
                                   "optim.minimum_learning_rate=1e-3", "optim.schedule=constant"});
  TrainingJob job;
  job.loss = peptide_loss(config);
  job.training = std::make_shared<peptide::SyntheticBatches>(peptide::SyntheticBatches::validation(
      peptide_synthetic_options(config), peptide_curriculum(config).front(), 1));
  job.options = training_options(config);
  StepRunner runner(job);
  double loss = 0, accuracy = 0;
  int step = 0;
  while (step < 500 && !(loss < 0.1 && accuracy > 0.95 && step > 0)) {
    loss = runner.run().loss;
    accuracy = runner.program(0).scalar("token_accuracy");
    if (++step % 25 == 0)
      std::cout << "step " << step << ": loss " << loss << ", " << accuracy << "\n";
  }
  std::cout << "loss " << loss << ", token accuracy " << accuracy << " at step " << step << "\n";
  EXPECT_LT(loss, 0.1);
  EXPECT_GT(accuracy, 0.95);
}

}  // namespace
}  // namespace fullbore
