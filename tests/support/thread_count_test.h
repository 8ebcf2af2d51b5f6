#pragma once
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/train/config.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {

/// A short training in folder `run`, of the text of JobTest where the model reads text.
class ThreadCountTest : public JobTest {
 protected:
  struct Job {
    std::string configuration;
    std::vector<std::string> overrides;
    int64_t microbatches;  ///< that it is to be cut into
    bool reads_text = true;
  };

  void run(const Job& job, const std::string& name, int threads, int steps) {
    std::vector<std::string> arguments = {"train",
                                          job.configuration,
                                          "run.dir=" + name,
                                          fmt::format("engine.threads={}", threads),
                                          fmt::format("train.steps={}", steps),
                                          "train.eval_interval=0",
                                          "optim.schedule=constant"};
    if (job.reads_text)
      arguments.insert(arguments.end(), {"data.path=text.txt", "train.sample_characters=0"});
    arguments.insert(arguments.end(), job.overrides.begin(), job.overrides.end());
    if (std::filesystem::exists(folder_ / name)) arguments.emplace_back("--resume");
    const CommandResult result = command(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(load_config(folder_ / (name + "/config.resolved.yaml")).engine.parallel_microbatches,
              job.microbatches);
  }
  /// Weights, and the state of the optimizer.
  std::string last(const std::string& name) const {
    std::string bytes;
    for (const char* group : {"weights", "optimizer"})
      bytes += read(name + "/checkpoints/last/" + group + ".safetensors");
    return bytes;
  }

  void expect_same_bits(const Job& job, int steps) {
    run(job, "one", 1, steps);
    for (const int threads : {2, 3, 4}) {
      const std::string name = fmt::format("threads-{}", threads);
      run(job, name, threads, steps);
      EXPECT_TRUE(last("one") == last(name)) << job.configuration << ", threads " << threads;
    }
    run(job, "resumed", 1, steps / 2);
    run(job, "resumed", 4, steps);
    EXPECT_TRUE(last("one") == last("resumed")) << job.configuration << ", resumed";
  }
};

inline std::string configuration(const char* name) {
  return testing::source_folder() + "/configs/" + name;
}

}  // namespace fullbore
