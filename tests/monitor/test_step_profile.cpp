#include "fullbore/device/registry.h"
#include "fullbore/monitor/step_profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "fullbore/monitor/chrome_trace.h"
#include "fullbore/monitor/launch_times.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/timeline.h"

namespace fullbore {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const MachinePeaks kPeaks = {1e9, 2e9, 1e9};

// A product, a loop of tanh, and its carried value.
Plan plan_with_loop(int64_t size = 8, int64_t iterations = 2) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {size, size}});
  const LoopResult result = loop(
      builder, {matmul(x, x)}, {}, {.iterations = iterations},
      [](const LoopBody& body) { return IterationResults{.carried = {tanh(body.carried[0])}}; });
  builder.output("y", result.carried[0]);
  return make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 2});
}

class StepProfileTest : public ::testing::Test {
 protected:
  StepProfileTest() {
    for (size_t i = 0; i < list_.size(); ++i) {
      const Node* const node = list_[i].node();
      if (node == nullptr) continue;
      if (node->op->name == "matmul") matmul_ = static_cast<int32_t>(i);
      if (node->op->name == "loop") loop_ = static_cast<int32_t>(i);
      if (node->op->name == "tanh") tanh_ = static_cast<int32_t>(i);
    }
  }

  /// Worker 1 takes part in the product alone, and ends it 100 ns later.
  void add_step(StepProfile& profile, int64_t matmul_ns, double step_seconds,
                size_t shape = 0) const {
    const std::vector<LaunchEvent> first = {{matmul_, 0, matmul_ns - 100},
                                            {loop_, 2000, 3000},
                                            {tanh_, 2100, 2300},
                                            {tanh_, 2500, 2900}};
    const std::vector<LaunchEvent> second = {{matmul_, 50, matmul_ns}};
    const std::vector<LaneEvents> workers = {{0, first, 0}, {1, second, 0}};
    profile.add(workers, step_seconds, shape);
  }
  static const KernelProfile& find(const std::vector<KernelProfile>& kernels,
                                   const std::string& name) {
    for (const KernelProfile& kernel : kernels)
      if (kernel.kernel.find(name) != std::string::npos) return kernel;
    ADD_FAILURE() << name;
    return kernels.front();
  }

  Plan plan_ = plan_with_loop();
  std::vector<LaunchEntry> list_ = launch_list(plan_);
  int32_t matmul_ = -1;
  int32_t loop_ = -1;
  int32_t tanh_ = -1;
};

TEST_F(StepProfileTest, TimesAreSpansOfAllWorkersAndMediansOverSteps) {
  StepProfile profile(plan_, kPeaks);
  for (const int64_t matmul_ns : {1000, 1500, 9000}) add_step(profile, matmul_ns, 4e-6);
  const std::vector<KernelProfile> kernels = profile.kernels();
  const KernelProfile& matmul = find(kernels, "matmul");
  EXPECT_DOUBLE_EQ(matmul.seconds, 1500e-9);
  EXPECT_EQ(matmul.launches, 1);
  EXPECT_DOUBLE_EQ(matmul.flops, 2 * 8 * 8 * 8);
  EXPECT_DOUBLE_EQ(matmul.roofline_seconds,
                   launch_roofline_seconds(plan_, list_[static_cast<size_t>(matmul_)], kPeaks));
  const KernelProfile& tanh = find(kernels, "tanh");
  EXPECT_DOUBLE_EQ(tanh.seconds, 600e-9) << "both iterations";
  EXPECT_EQ(tanh.launches, 2);
  EXPECT_DOUBLE_EQ(tanh.flops, 2 * launch_cost(plan_, list_[static_cast<size_t>(tanh_)]).flops);
  EXPECT_NEAR(find(kernels, "loop").seconds, 400e-9, 1e-15) << "without what it holds";
  EXPECT_NEAR(profile.idle_seconds(), 4e-6 - 2500e-9, 1e-15);
  EXPECT_EQ(kernels.front().kernel, matmul.kernel) << "the longest first";
}

// 100 ns of the product alone, 200 ns beside the tanh, 100 ns of that alone.
TEST_F(StepProfileTest, LaunchesSideBySideShareTheTime) {
  StepProfile profile(plan_, kPeaks);
  const std::vector<LaunchEvent> first = {{matmul_, 1000, 1300}};
  const std::vector<LaunchEvent> second = {{tanh_, 1100, 1400}};
  profile.add(std::vector<LaneEvents>{{0, first, 0}, {1, second, 0}}, 1e-6);
  EXPECT_NEAR(find(profile.kernels(), "matmul").seconds, 200e-9, 1e-15);
  EXPECT_NEAR(find(profile.kernels(), "tanh").seconds, 200e-9, 1e-15);
  EXPECT_NEAR(profile.idle_seconds(), 600e-9, 1e-15);
}

// Two thread groups make a loop side by side: the first holds a tanh for 200 ns of 1000, the second for 700, of 1200.
TEST_F(StepProfileTest, LoopsSideBySideShareTheTimeToo) {
  std::vector<LaunchEntry> list = list_;
  for (const int32_t each : {loop_, tanh_}) list[static_cast<size_t>(each)].thread_groups = 2;
  const std::vector<LaunchEvent> first = {{loop_, 0, 1000}, {tanh_, 100, 300}};
  const std::vector<LaunchEvent> second = {{loop_, 0, 1200}, {tanh_, 300, 1000}};
  const std::vector<LaunchTime> times =
      launch_times(std::vector<LaneEvents>{{0, first, 0}, {1, second, 0}}, list);
  const LaunchTime& loop = times[static_cast<size_t>(loop_)];
  const LaunchTime& tanh = times[static_cast<size_t>(tanh_)];
  EXPECT_NEAR(tanh.seconds, 450e-9, 1e-15);
  EXPECT_NEAR(loop.seconds, 750e-9, 1e-15);
  EXPECT_EQ(loop.launches, 2);
}

TEST_F(StepProfileTest, TextAndJsonTellTheSame) {
  StepProfile profile(plan_, kPeaks);
  add_step(profile, 1500, 4e-6);
  const nlohmann::ordered_json json = to_json(profile);
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["kernels"].size(), 3U);
  double share = json["idle_seconds"].get<double>() / 4e-6;
  for (const auto& kernel : json["kernels"]) share += kernel["share"].get<double>();
  EXPECT_NEAR(share, 1, 1e-9);

  const std::string words = text(profile, 2, 80);
  EXPECT_THAT(words, HasSubstr("1 kernels more"));
  EXPECT_THAT(words, HasSubstr("between launches"));
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// Measured peaks that something exceeds are wrong, or the bytes were not memory's.
TEST_F(StepProfileTest, MoreThanTheRooflineIsNamedAsAnError) {
  StepProfile profile(plan_, {1e15, 1e15, 1e15});
  add_step(profile, 1500, 4e-6);
  EXPECT_THAT(text(profile, 10, 0), Not(HasSubstr("100 %")));
  const double before = profile.roofline_seconds();
  profile.set_peaks({1e8, 1e8, 1e8});
  EXPECT_GT(profile.roofline_seconds(), 1e6 * before);
  EXPECT_THAT(text(profile, 10, 0), HasSubstr("More than 100 % is an error of the measurement"));
  StepProfile slow(plan_, {1e8, 1e8, 1e8});
  add_step(slow, 1500, 1);
  EXPECT_THAT(text(slow, 10, 0), HasSubstr("peak above 100 %: operands came from caches"));
}

TEST_F(StepProfileTest, OfSeveralShapesMediansAreWeighedBySteps) {
  const Plan other = plan_with_loop(16, 5);
  StepProfile profile({{"[8,8]", &plan_}, {"[16,16]", &other}, {"[4,4]", &plan_}}, kPeaks);
  for (const int64_t matmul_ns : {1000, 1500, 9000}) add_step(profile, matmul_ns, 4e-6);
  add_step(profile, 1800, 8e-6, 1);
  EXPECT_EQ(profile.steps(), 4);
  EXPECT_DOUBLE_EQ(profile.step_seconds(), (3 * 4e-6 + 8e-6) / 4);
  EXPECT_NEAR(profile.idle_seconds(), (3 * (4e-6 - 2500e-9) + 8e-6 - 2800e-9) / 4, 1e-15);
  EXPECT_DOUBLE_EQ(profile.roofline_seconds(),
                   (3 * roofline_seconds(plan_, kPeaks) + roofline_seconds(other, kPeaks)) / 4);
  const std::vector<KernelProfile> kernels = profile.kernels();
  const KernelProfile& matmul = find(kernels, "matmul");  // both read alike
  EXPECT_DOUBLE_EQ(matmul.seconds, 0.75 * 1500e-9 + 0.25 * 1800e-9);
  EXPECT_DOUBLE_EQ(matmul.flops, 0.75 * 2 * 8 * 8 * 8 + 0.25 * 2 * 16 * 16 * 16);
  EXPECT_EQ(matmul.launches, 1);
  EXPECT_EQ(find(kernels, "loop of 2 iterations").launches, 0.75);
  EXPECT_EQ(find(kernels, "loop of 5 iterations").launches, 0.25);

  const nlohmann::ordered_json json = to_json(profile);
  ASSERT_EQ(json["shapes"].size(), 3U);
  EXPECT_EQ(json["shapes"][0]["steps"], 3);
  EXPECT_DOUBLE_EQ(json["shapes"][1]["share"], 0.4);
  EXPECT_TRUE(json["shapes"][2]["median_seconds"].is_null()) << "not met";
  const std::string words = text(profile, 10, 80);
  EXPECT_THAT(words, HasSubstr("[16,16]                1   40.0%         0.008"));
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// Tells what it was given of kernels whose description has a word.
class ScriptedOccupancies : public OccupancySource {
 public:
  explicit ScriptedOccupancies(std::map<std::string, Occupancy> known) : known_(std::move(known)) {}
  std::optional<Occupancy> occupancy(const Kernel& kernel) override {
    for (const auto& [part, occupancy] : known_)
      if (kernel.description().find(part) != std::string::npos) return occupancy;
    return {};
  }

 private:
  std::map<std::string, Occupancy> known_;
};

TEST_F(StepProfileTest, OccupanciesAreAColumnWhereThereAreAny) {
  StepProfile profile(plan_, kPeaks);
  add_step(profile, 1500, 4e-6);
  const std::string plain = text(profile, 10, 80);
  EXPECT_THAT(plain, Not(HasSubstr("occ")));
  EXPECT_FALSE(to_json(profile)["kernels"][0].contains("occupancy"));

  ScriptedOccupancies nothing(std::map<std::string, Occupancy>{});
  profile.set_occupancies(nothing);
  EXPECT_EQ(text(profile, 10, 80), plain) << "no empty column";

  const Occupancy half = {.share = 0.5,
                          .blocks = 4,
                          .block_threads = 256,
                          .registers = 64,
                          .shared_bytes = 1024,
                          .limit = OccupancyLimit::registers};
  ScriptedOccupancies known(std::map<std::string, Occupancy>{{"matmul", half}});
  profile.set_occupancies(known);
  const std::string words = text(profile, 10, 80);
  EXPECT_THAT(words, HasSubstr("GB/s peak  occ line          kernel\n"));
  EXPECT_THAT(words, ContainsRegex("% +50r [^\n]*matmul"));
  EXPECT_THAT(words, Not(ContainsRegex("50r [^\n]*tanh"))) << "of which nothing is known";
  EXPECT_THAT(words, HasSubstr("for registers (r), shared memory (s) or the size of blocks (b)\n"));
  std::istringstream lines(words);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;

  for (const auto& kernel : to_json(profile)["kernels"]) {
    const bool is_matmul = kernel["kernel"].get<std::string>().find("matmul") != std::string::npos;
    ASSERT_EQ(kernel.contains("occupancy"), is_matmul) << kernel;
    if (!is_matmul) continue;
    EXPECT_EQ(kernel["occupancy"],
              nlohmann::ordered_json::parse(R"({"share": 0.5, "limit": "registers", "blocks": 4,
                                                "block_threads": 256, "registers": 64,
                                                "shared_bytes": 1024})"));
  }
}

// Kernels of several shapes that read alike are one row.
TEST_F(StepProfileTest, OfKernelsThatReadAlikeTheLowestOccupancyIsTold) {
  StepProfile profile({{"[8,8]", &plan_}, {"[16,16]", &plan_}}, kPeaks);
  for (const size_t shape : {size_t{0}, size_t{1}}) add_step(profile, 1500, 4e-6, shape);
  class Falling : public OccupancySource {
   public:
    std::optional<Occupancy> occupancy(const Kernel&) override {
      share_ /= 2;
      return Occupancy{.share = share_, .limit = OccupancyLimit::shared_memory};
    }
    double share() const { return share_; }

   private:
    double share_ = 1;
  } falling;
  profile.set_occupancies(falling);
  double lowest = 1;
  for (const KernelProfile& kernel : profile.kernels())
    if (kernel.occupancy) lowest = std::min(lowest, kernel.occupancy->share);
  EXPECT_EQ(lowest, falling.share());
  for (const auto& kernel : to_json(profile)["kernels"])
    if (kernel.contains("occupancy")) {
      EXPECT_EQ(kernel["occupancy"]["limit"], "shared memory");
    }
}

// A card's figures are a thousand times a processor's.
TEST_F(StepProfileTest, LargeRatesLeaveTheirDecimalsOut) {
  const Plan larger = plan_with_loop(64);
  const std::vector<LaunchEvent> events = {{matmul_, 0, 1}};  // of one nanosecond
  const std::vector<LaneEvents> workers = {{0, events, 0}};
  StepProfile profile(plan_, kPeaks);
  profile.add(workers, 1e-6);
  EXPECT_THAT(text(profile, 10, 80),
              HasSubstr(fmt::format(" 1024.0 {:5.1f} ", find(profile.kernels(), "matmul").bytes)));
  StepProfile more(larger, kPeaks);
  more.add(workers, 1e-6);
  EXPECT_THAT(text(more, 10, 80),
              HasSubstr(fmt::format(" 524288 {:.0f} ", find(more.kernels(), "matmul").bytes)));
}

TEST_F(StepProfileTest, LaunchesWithoutRoomAreReported) {
  StepProfile profile(plan_, kPeaks);
  const std::vector<LaunchEvent> events = {{matmul_, 0, 1000}};
  const std::vector<LaneEvents> workers = {{0, events, 12}};
  profile.add(workers, 1e-6);
  EXPECT_EQ(profile.dropped(), 12);
  EXPECT_THAT(text(profile, 10, 0), HasSubstr("12 launches were not recorded"));
}

TEST_F(StepProfileTest, TracesHaveARowPerWorker) {
  const std::vector<LaunchEvent> first = {{matmul_, 100, 200}, {tanh_, 300, 400}};
  const std::vector<LaunchEvent> second = {{matmul_, 110, 190}};
  const std::vector<LaneEvents> workers = {{0, first, 0}, {1, second, 0}};
  ChromeTrace trace(1 << 16);
  trace_step(trace, plan_, list_, workers);
  const auto json = nlohmann::json::parse(trace.finish({}));
  std::vector<nlohmann::json> launches, counts;
  for (const nlohmann::json& event : json["traceEvents"])
    (event["ph"] == "X" ? launches : counts).push_back(event);
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[2]["tid"], 1);
  EXPECT_EQ(launches[2]["args"]["launch"], matmul_);
  // The matmul's result lives in the arena until the tanh has read it.
  ASSERT_FALSE(counts.empty());
  EXPECT_EQ(counts[0]["ph"], "C");
  EXPECT_EQ(counts[0]["args"]["bytes"], live_bytes_by_entry(plan_)[static_cast<size_t>(matmul_)]);
}

}  // namespace
}  // namespace fullbore
