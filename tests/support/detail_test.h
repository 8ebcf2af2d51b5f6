#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command_run.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::testing {

/// Expects that what log.detail=off leaves out of a job's steps is not computed: the plan has fewer operations. `arguments`:
/// of `fullbore plan`.
inline void expect_detail_is_not_computed(const ScratchFolder& folder,
                                          const std::vector<std::string>& arguments) {
  const auto flops = [&](const std::string& detail) -> double {
    std::vector<std::string> words = {"plan"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    // Values that kernels make again, which depends on what else they make, would count twice.
    words.insert(words.end(), {"log.detail=" + detail,
                               "engine.disabled_passes=[rematerialize_cheap_values]", "--json"});
    const CommandResult result = run_command(folder.path(), words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
    return json.is_discarded() ? -1 : json["train"]["flops"].get<double>();
  };
  EXPECT_LT(flops("off"), flops("debug-training"));
}

}  // namespace fullbore::testing
