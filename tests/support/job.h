#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/support/command_run.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {

/// A folder with a text and a configuration of a tiny model, for one test: `train()` runs in it.
class JobTest : public ::testing::Test {
 protected:
  JobTest();

  /// "train job.yaml data.path=text.txt <more>" in the folder.
  CommandResult train(const std::vector<std::string>& more = {},
                      const std::function<void(pid_t)>& while_running = {}) const;
  CommandResult command(const std::vector<std::string>& arguments) const {
    return run_command(folder_.path(), arguments);
  }
  std::string read(const std::string& name) const;
  /// Writes JSON lines of documents of 1 to 30 letters to the folder; returns the file's name.
  std::string put_documents() const;
  nlohmann::json summary(const std::string& run) const;
  /// Lines of metrics.jsonl, but for those that the clock writes (kind `phases`).
  std::vector<nlohmann::json> metrics(const std::string& run) const;

  testing::ScratchFolder folder_;
};

/// From now on job.yaml is of the model `tiny` of tests/tiny, and commands are those of bin/fullbore_tiny, which has it. True.
bool use_tiny_model();

/// The same lines without what depends on the clock.
std::vector<nlohmann::json> without_times(std::vector<nlohmann::json> metrics);

}  // namespace fullbore
