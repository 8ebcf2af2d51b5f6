#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/job.h"

namespace fullbore::testing {

/// Expects of `fullbore diagnose <arguments> --json -` that all of the wall time has a row, kernels among them, and that
/// neither the step's kernels nor anything else is counted twice. Returns what it said.
inline nlohmann::json expect_all_time_attributed(const ScratchFolder& folder,
                                                 std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "diagnose");
  for (const char* word : {"--steps", "4", "--json", "-"}) arguments.emplace_back(word);
  const CommandResult result = run_command(folder.path(), arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  if (json.is_discarded()) {
    ADD_FAILURE() << result.out;
    return nlohmann::json::object();
  }
  EXPECT_NEAR(json["measured"]["attributed_share"].get<double>(), 1, 0.01);
  double kernels = 0;
  for (const nlohmann::json& row : json["measured"]["rows"])
    if (row["phase"] == "step" && row.contains("roofline_seconds"))
      kernels += row["seconds"].get<double>();
  EXPECT_GT(kernels, 0);
  EXPECT_NE(json["bottleneck"], "");
  return json;
}

}  // namespace fullbore::testing
