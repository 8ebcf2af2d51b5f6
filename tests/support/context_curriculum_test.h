#pragma once
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore {

class ContextCurriculum : public JobTest {
 protected:
  const std::vector<std::string> staged_ = {
      "model.context=16", "data.context_curriculum=[until_step=4 length=4, until_step=9 length=8]"};

  CommandResult staged(const std::string& run, std::vector<std::string> more) const {
    more.insert(more.begin(), staged_.begin(), staged_.end());
    more.push_back("run.dir=" + run);
    return train(more);
  }
  /// Steps' losses by step, from lines of every step.
  std::map<int64_t, double> losses(const std::string& run) const {
    std::map<int64_t, double> found;
    for (const nlohmann::json& record : metrics(run))
      if (record["kind"] == "train") found[record["step"]] = record["loss"];
    return found;
  }

  /// Trains to step 14 by these settings, of which the first is train.steps=14: at once and in two parts.
  void expect_same_bits_resumed(const std::vector<std::string>& kind,
                                const std::string& name) const {
    const std::vector<std::string> constant = {"optim.schedule=constant", "log.interval=1"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), constant.begin(), constant.end());
      return more;
    };
    const CommandResult whole = staged(name, with(kind));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    std::vector<std::string> until = kind;
    until.front() = "train.steps=6";  // within the second stage
    ASSERT_EQ(staged(name + "-parts", with(until)).exit_code, 0);
    std::vector<std::string> rest = with(kind);
    rest.emplace_back("--resume");
    const CommandResult resumed = staged(name + "-parts", rest);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    const std::map<int64_t, double> all = losses(name);
    EXPECT_EQ(all.size(), 14U);
    EXPECT_EQ(losses(name + "-parts"), all);
    // The first stage is of other batches than the same steps without a curriculum.
    std::vector<std::string> plain = with(kind);
    plain.insert(plain.end(), {"model.context=16", "run.dir=" + name + "-plain"});
    ASSERT_EQ(train(plain).exit_code, 0);
    EXPECT_NE(losses(name + "-plain").at(1), all.at(1));
  }
};

}  // namespace fullbore
