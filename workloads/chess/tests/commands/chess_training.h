#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore::chess {

/// A model of a few thousand parameters that both tasks are trained with, by the command.
class ChessTraining : public JobTest {
 protected:
  /// The run `warm` learns from records.
  void warm_up() {
    folder_.put("tiny.yaml", kTiny);
    const CommandResult result =
        command({"train", "tiny.yaml", "run.dir=warm", "data.batching=chess", "train.steps=4",
                 "train.batch_size=4"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  /// It goes on by rewards.
  CommandResult reward(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "tiny.yaml", "data.batching=chess_grpo",
                                      "model.initialize_from=warm"};
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }
  std::string weights(const std::string& run) {
    return read(run + "/checkpoints/last/weights.safetensors");
  }
  /// Of the metrics of steps, those that tell `name`.
  std::vector<double> told(const std::string& run, const std::string& name) {
    std::vector<double> values;
    for (const nlohmann::json& line : metrics(run))
      if (line.contains(name)) values.push_back(line[name]);
    return values;
  }
  /// A program of a few lines of shell; returns its path.
  std::string put_program(const std::string& name, const std::string& lines) {
    std::string path = folder_.put(name, "#!/bin/sh\n" + lines);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  static constexpr const char* kTiny = R"(model:
  name: tiny_decoder
  layers: 1
  heads: 2
  width: 32
  context: 256
  vocabulary: 257
data:
  tokenizer: byte
  validation_fraction: 0.1
chess:
  records: 120
  truth: search:1
rollout:
  prompts: 2
  samples: 3
  policy_tokens: 12
optim:
  learning_rate: 1e-2
train:
  sample_characters: 0
  eval_interval: 0
log:
  interval: 1
)";
};

}  // namespace fullbore::chess
