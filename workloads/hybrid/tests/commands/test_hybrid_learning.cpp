#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "fullbore/monitor/console.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/run_directory.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

/// Minutes of training: on demand.
class HybridLearning : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FB_SLOW") == nullptr) GTEST_SKIP() << "set FB_SLOW=1 to train for minutes";
    if (!std::filesystem::exists(text_)) GTEST_SKIP() << text_ << " is not there";
  }
  const std::string text_ = testing::shared_folder() + "/data/tinyshakespeare.txt";
  testing::ScratchFolder folder_;
};

// Counting trigrams gives 1.91; the recorded run had 1.76 with static decays.
TEST_F(HybridLearning, BothPresetsLearnCharactersIn500Steps) {
  for (const std::string preset : {"hybrid-p2", "hybrid-p1"}) {
    const std::vector<std::string> settings = {
        "data.path=" + text_, "train.batch_size=64",   "model.context=64",
        "train.steps=500",    "optim.warmup_steps=50", "run.dir=" + (folder_ / preset)};
    const Config config =
        load_config(testing::source_folder() + "/configs/" + preset + ".yaml", settings);
    Console console;
    ASSERT_EQ(train(training_job(config, open_text(config)), RunDirectory::create(config.run.dir),
                    console, false, std::chrono::steady_clock::now()),
              ExitCode::kOk);
    const auto summary = nlohmann::json::parse(read_file(config.run.dir + "/summary.json").value());
    const double loss = summary["best_validation_loss"];
    std::cout << preset << ": quick validation loss " << loss << "\n";
    EXPECT_LT(loss, 1.95) << preset;
  }
}

}  // namespace
}  // namespace fullbore
