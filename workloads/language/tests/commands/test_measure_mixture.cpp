// bench and profile of a job whose batches come in several shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class MixtureTest : public JobTest {
 protected:
  /// Documents of up to 8 tokens in batches of [20,2], [8,5] and [5,8].
  CommandResult on_buckets(const std::string& subcommand, std::vector<std::string> more) const {
    more.insert(more.begin(),
                {subcommand, "job.yaml", "data.path=" + put_documents(), "data.batching=buckets",
                 "data.buckets=[2, 5, 8]", "data.tokens_per_batch=40"});
    return command(more);
  }
};

TEST_F(MixtureTest, BenchSumsUpAMixtureOfShapes) {
  const CommandResult result =
      on_buckets("bench", {"--vs", "engine.disabled_passes=[fuse]", "--rounds", "4", "--steps", "6",
                           "--warm-up", "1", "--json", "bench.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"ms, the mean of 24", "at most 40 tokens", "shapes, as configured:",
                           "shapes, engine.disabled_passes=[fuse]:", "  [20,2] ", "  [5,8] "})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_THAT(result.out, Not(HasSubstr("the median of 24")));
  const Json json = Json::parse(read("bench.json"));
  EXPECT_GT(json["warm_up_steps"], 1) << "until every shape was met";
  for (const Json& contender : json["contenders"]) {
    ASSERT_EQ(contender["shapes"].size(), 3U);
    EXPECT_EQ(contender["steps_per_round"], 6);
    int64_t steps = 0;
    double flops = 0;
    double roofline = 0;
    for (const Json& shape : contender["shapes"]) {
      const auto met = shape["steps"].get<int64_t>();
      steps += met;
      flops += static_cast<double>(met) * shape["flops_per_step"].get<double>();
      roofline += static_cast<double>(met) * shape["roofline_seconds"].get<double>();
      EXPECT_EQ(shape["median_seconds"].is_null(), met == 0);
    }
    EXPECT_EQ(steps, 24);
    const double seconds = 24 * contender["seconds_per_step"]["mean"].get<double>();
    const auto expect_near = [&](const char* key, double expected) {
      EXPECT_NEAR(contender[key], expected, 1e-9 * expected) << key;
    };
    expect_near("flops_per_step", flops / 24);
    expect_near("share_of_peak_flops", flops / seconds / contender["peak_flops"].get<double>());
    expect_near("share_of_roofline", roofline / seconds);
    expect_near("tokens_per_second", 24 * contender["tokens_per_step"].get<double>() / seconds);
  }
  for (const char* same : {"tokens_per_step", "samples_per_step"})
    EXPECT_EQ(json["contenders"][0][same], json["contenders"][1][same]) << "the same batches";
  // Fused kernels make cheap values again.
  const double apart = json["contenders"][1]["flops_per_step"];
  EXPECT_NEAR(json["contenders"][0]["flops_per_step"], apart, 1e-3 * apart);
}

TEST_F(MixtureTest, ProfileIsOfTheMixtureOfShapes) {
  const CommandResult result =
      on_buckets("profile", {"--wait", "1", "--warm-up", "1", "--active", "12", "--repeat", "2",
                             "--json", "profile.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("medians of 24"));
  EXPECT_THAT(result.out, HasSubstr("\n[20,2] "));
  const Json json = Json::parse(read("profile.json"));
  ASSERT_EQ(json["shapes"].size(), 3U);
  int64_t steps = 0;
  double seconds = 0;
  std::map<std::string, int64_t> met;
  for (const Json& shape : json["shapes"]) {
    const auto count = shape["steps"].get<int64_t>();
    if (count == 0) continue;
    met[shape["batch"]] = count;
    steps += count;
    seconds += static_cast<double>(count) * shape["median_seconds"].get<double>();
  }
  EXPECT_EQ(steps, 24);
  EXPECT_GE(met.size(), 2U);
  EXPECT_NEAR(json["seconds_per_step"], seconds / 24, 1e-9);
  double share = json["idle_seconds"].get<double>() / json["seconds_per_step"].get<double>();
  for (const Json& kernel : json["kernels"]) share += kernel["share"].get<double>();
  EXPECT_GE(share, 1 - 1e-6);

  std::map<std::string, int64_t> drawn;
  const Json trace = Json::parse(read("job.trace.json"));
  for (const Json& event : trace["traceEvents"])
    if (event["name"].get<std::string>().find("step ") == 0) ++drawn[event["args"]["batch"]];
  EXPECT_EQ(drawn, met);
}

}  // namespace
}  // namespace fullbore
