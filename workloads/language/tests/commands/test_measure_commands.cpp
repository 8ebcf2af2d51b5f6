#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "tests/support/command_run.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

void expect_no_line_wider(const std::string& text, size_t columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
}

const std::vector<std::string> kShort = {"--rounds",  "3", "--steps",   "2",
                                         "--warm-up", "2", "--no-start"};

class MeasureTest : public JobTest {
 protected:
  CommandResult bench(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"bench", "job.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), kShort.begin(), kShort.end());
    return command(arguments);
  }
};

TEST_F(MeasureTest, BenchTellsAllItIsAskedFor) {
  const CommandResult result = bench({"data.path=text.txt", "--json", "bench.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"ms, the median of 6", "tok/s", "samples/s", "% of peak", "reached",
                           "% of bandwidth", "data wait", "planned", "first", "batches: text.txt"})
    EXPECT_THAT(result.out, HasSubstr(part));
  expect_no_line_wider(result.out, 80);
  const Json json = Json::parse(read("bench.json"));
  ASSERT_EQ(json["contenders"].size(), 1U);
  const Json& contender = json["contenders"][0];
  EXPECT_EQ(contender["steps"], 6);
  EXPECT_EQ(contender["tokens_per_step"], 4 * 8);
  EXPECT_EQ(contender["samples_per_step"], 4);
  for (const char* key : {"tokens_per_second", "flops_per_step", "bytes_per_step",
                          "share_of_peak_flops", "share_of_roofline", "planned_peak_bytes"})
    EXPECT_GT(contender[key], 0) << key;
  EXPECT_GE(contender["data_wait_share"], 0);
  EXPECT_LT(contender["data_wait_share"], 1);
  EXPECT_LE(contender["seconds_per_step"]["least"], contender["seconds_per_step"]["median"]);
  EXPECT_FALSE(json.contains("throughput_ratio"));
}

TEST_F(MeasureTest, BenchTellsWhereTheStartGoes) {
  const CommandResult result =
      command({"bench", "job.yaml", "--vocabulary", "30", "--rounds", "3", "--steps", "2",
               "--warm-up", "1", "--vs", "engine.threads=1", "--json", "bench.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("start, engine.threads=1:"));
  EXPECT_THAT(result.out, HasSubstr("beside a step"));
  expect_no_line_wider(result.out, 80);
  const Json json = Json::parse(read("bench.json"));
  for (const Json& contender : json["contenders"]) {
    for (const char* which : {"cold", "warm"}) {
      const Json& start = contender["start"][which];
      double sum = 0;
      std::set<std::string> parts;
      for (const auto& [part, seconds] : start["parts"].items()) {
        EXPECT_GE(seconds, 0) << part;
        sum += seconds.get<double>();
        parts.insert(part);
      }
      EXPECT_EQ(parts, (std::set<std::string>{"data", "trace", "state", "save", "compile", "memory",
                                              "step"}));
      EXPECT_NEAR(sum, start["seconds"].get<double>(), 1e-9);
      EXPECT_NEAR(
          start["seconds"].get<double>() - contender["seconds_per_step"]["median"].get<double>(),
          start["seconds_beside_a_step"].get<double>(), 1e-9);
    }
  }
  const CommandResult short_one = bench({"--vocabulary", "30", "--json", "bench.json"});
  EXPECT_THAT(short_one.out, Not(HasSubstr("beside a step")));
  EXPECT_TRUE(Json::parse(read("bench.json"))["contenders"][0]["start"].is_null());
}

TEST_F(MeasureTest, StartsLeaveNothingBehind) {
  const std::string temporary = folder_ / "temporary";
  std::filesystem::create_directory(temporary);
  setenv("TMPDIR", temporary.c_str(), 1);
  const CommandResult result = command({"bench", "job.yaml", "--vocabulary", "30", "--rounds", "3",
                                        "--steps", "2", "--warm-up", "1"});
  unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

// Of nobody else's caches: a cold start must find none.
TEST_F(MeasureTest, StartsKeepTheirCachesToThemselves) {
  namespace fs = std::filesystem;
  const std::string temporary = folder_ / "temporary";
  fs::create_directory(temporary);
  bool seen = false;
  const auto look = [&](pid_t) {
    std::error_code gone;  // at any time
    for (fs::directory_iterator start(temporary, gone), end; !seen && !gone && start != end;
         start.increment(gone))
      seen = fs::exists(start->path() / "cache", gone);
  };
  setenv("TMPDIR", temporary.c_str(), 1);
  const CommandResult result = run_command(folder_.path(),
                                           {"bench", "job.yaml", "--vocabulary", "30", "--rounds",
                                            "3", "--steps", "2", "--warm-up", "1"},
                                           look);
  unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(seen);
}

// A process that makes one start tells the parts in their order, the step last, and nothing else.
TEST_F(MeasureTest, OneStartTellsItsPartsAsJson) {
  const CommandResult result =
      command({"bench", "job.yaml", "data.path=text.txt", "--one-start", "once"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> parts;
  for (const Json& part : Json::parse(result.out)) parts.push_back(part["part"]);
  EXPECT_EQ(parts, (std::vector<std::string>{"data", "trace", "state", "save", "compile", "memory",
                                             "step"}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "once/log.txt"));
}

TEST_F(MeasureTest, AStartThatFailsIsToldWithItsReason) {
  EXPECT_EQ(command({"bench", "job.yaml", "--vocabulary", "30", "nonsense=1"}).exit_code, 2);
  const CommandResult result = command({"bench", "job.yaml", "data.path=nowhere.txt"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("nowhere.txt"));
}

TEST_F(MeasureTest, BenchDoesWhatTrainingDoes) {
  ASSERT_EQ(bench({"data.path=text.txt", "--json", "bench.json"}).exit_code, 0);
  ASSERT_EQ(train({"log.interval=1"}).exit_code, 0);
  const Json json = Json::parse(read("bench.json"));
  const std::vector<Json> lines = metrics("runs/tiny-1");
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const Json& line) { return line["kind"] == "train"; });
  ASSERT_NE(first, lines.end());
  EXPECT_EQ(static_cast<float>(json["contenders"][0]["first_loss"].get<double>()),
            static_cast<float>(first->at("loss").get<double>()));
  EXPECT_EQ(json["contenders"][0]["flops_per_step"], summary("runs/tiny-1")["flops_per_step"]);
}

TEST_F(MeasureTest, VersusInterleavesTwoSettingsAndTellsBothLosses) {
  const CommandResult result = bench({"data.path=text.txt", "--vs", "engine.disabled_passes=[fuse]",
                                      "--vs", "engine.threads=1", "--json", "bench.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("times the throughput, 95 % confidence"));
  EXPECT_THAT(result.out, HasSubstr("bootstrap of the median over 3 rounds of paired ratios"));
  EXPECT_THAT(result.out, HasSubstr("as configured"));
  const Json json = Json::parse(read("bench.json"));
  ASSERT_EQ(json["contenders"].size(), 2U);
  EXPECT_EQ(json["contenders"][1]["name"], "engine.disabled_passes=[fuse] engine.threads=1");
  EXPECT_EQ(json["contenders"][0]["threads"], 2);
  EXPECT_EQ(json["contenders"][1]["threads"], 1);
  EXPECT_GT(json["contenders"][1]["launches"], json["contenders"][0]["launches"]);
  for (const char* loss : {"first_loss", "last_loss"}) {
    const double a = json["contenders"][0][loss];
    EXPECT_NEAR(a, json["contenders"][1][loss].get<double>(), 1e-4 * a) << loss;
    EXPECT_THAT(result.out, HasSubstr(fmt::format("{:.4f}", a)));
  }
  const Json& ratio = json["throughput_ratio"];
  EXPECT_LE(ratio["low"], ratio["median"]);
  EXPECT_LE(ratio["median"], ratio["high"]);
}

TEST_F(MeasureTest, WithoutATextTokensAreRandom) {
  EXPECT_EQ(bench({}).exit_code, 2) << "how many kinds of them there are is not known";
  const CommandResult given = bench({"--vocabulary", "30"});
  ASSERT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("random tokens, 30 kinds"));
  EXPECT_THAT(bench({"model.vocabulary=50"}).out, HasSubstr("random tokens, 50 kinds"));
}

TEST_F(MeasureTest, DocumentsAreMeasuredInOneShape) {
  folder_.put("lines.jsonl", [] {
    std::string text;
    for (int i = 0; i < 200; ++i)
      text +=
          fmt::format("{{\"text\": \"{}\"}}\n", std::string(3 + static_cast<size_t>(i % 5), 'a'));
    return text;
  }());
  const CommandResult packed =
      bench({"data.path=lines.jsonl", "data.batching=packed", "--json", "packed.json"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const double tokens = Json::parse(read("packed.json"))["contenders"][0]["tokens_per_step"];
  EXPECT_GT(tokens, 0);
  EXPECT_LT(tokens, 4 * 8) << "a document's last token predicts nothing";
  EXPECT_EQ(bench({"data.path=lines.jsonl", "data.batching=buckets", "data.buckets=[8]"}).exit_code,
            0);
  const CommandResult random = bench({"--vocabulary", "9", "data.batching=packed"});
  EXPECT_EQ(random.exit_code, 2);
  EXPECT_THAT(random.err, HasSubstr("random tokens make no documents"));
}

TEST_F(MeasureTest, JsonOnStandardOutputStandsAlone) {
  const CommandResult result = bench({"--vocabulary", "30", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["schema"], 1);
}

// What is measured is then another job than the configuration's.
TEST_F(MeasureTest, WhatMemoryChangesIsTold) {
  const CommandResult plan =
      command({"plan", "job.yaml", "--vocabulary", "20", "train.batch_size=1024", "model.layers=4",
               "engine.threads=1", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const Json planned = Json::parse(plan.out);
  const auto bytes = planned["planned_peak_bytes"].get<int64_t>();
  const std::vector<std::string> tight = {
      "--vocabulary",
      "20",
      "train.batch_size=1024",
      "model.layers=4",
      "engine.degrade=[recompute]",
      fmt::format("engine.memory_budget={}",
                  planned["process_bytes"].get<int64_t>() + bytes - bytes / 10)};
  const std::string decision = "engine.recompute=auto: the run would take";

  std::vector<std::string> arguments = tight;
  arguments.insert(arguments.end(), {"--vs", "engine.memory_budget=1GiB", "--json", "bench.json"});
  const CommandResult benched = bench(arguments);
  ASSERT_EQ(benched.exit_code, 0) << benched.err;
  EXPECT_THAT(benched.out, HasSubstr("memory, as configured:\n  " + decision));
  EXPECT_THAT(benched.out, Not(HasSubstr("memory, engine.memory_budget=1GiB")));
  const Json contenders = Json::parse(read("bench.json"))["contenders"];
  EXPECT_THAT(contenders[0]["decisions"].at(0), HasSubstr(decision));
  EXPECT_TRUE(contenders[1]["decisions"].empty());

  arguments = {"profile", "job.yaml", "--active", "1",      "--repeat",
               "1",       "--trace",  "",         "--json", "profile.json"};
  arguments.insert(arguments.end(), tight.begin(), tight.end());
  const CommandResult profiled = command(arguments);
  ASSERT_EQ(profiled.exit_code, 0) << profiled.err;
  EXPECT_THAT(profiled.out, HasSubstr("memory: " + decision));
  EXPECT_THAT(Json::parse(read("profile.json"))["decisions"].at(0), HasSubstr(decision));
}

TEST_F(MeasureTest, BadArgumentsOfBenchAreExplained) {
  const CommandResult key = bench({"data.path=text.txt", "--vs", "engine.thread=1"});
  EXPECT_EQ(key.exit_code, 2);
  EXPECT_THAT(key.err, HasSubstr("Did you mean 'engine.threads'?"));
  EXPECT_EQ(bench({"data.path=text.txt", "--vs", "engine.threads"}).exit_code, 2);
  EXPECT_EQ(bench({"data.path=none.txt"}).exit_code, 3);
  const CommandResult folder = bench({"--vocabulary", "9", "--json", "nowhere/bench.json"});
  EXPECT_EQ(folder.exit_code, 3);
  EXPECT_THAT(folder.err, HasSubstr("there is no folder nowhere"));
  EXPECT_EQ(folder.out, "") << "refused before anything is measured";
  EXPECT_EQ(command({"bench", "job.yaml", "--rounds", "2"}).exit_code, 2);
  EXPECT_EQ(command({"bench"}).exit_code, 2);
  const CommandResult diverged = bench({"data.path=text.txt", "optim.learning_rate=1e15",
                                        "optim.warmup_steps=0", "optim.clip_norm=0"});
  EXPECT_EQ(diverged.exit_code, 4);
  EXPECT_THAT(diverged.err, HasSubstr("the loss of step"));
}

TEST_F(MeasureTest, ProfileTellsWhereTheTimeGoesAndDrawsIt) {
  const CommandResult result =
      command({"profile", "job.yaml", "data.path=text.txt", "--wait", "1", "--warm-up", "1",
               "--active", "2", "--repeat", "2", "--json", "profile.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("median of 4"));
  EXPECT_THAT(result.out, HasSubstr("matmul"));
  EXPECT_THAT(result.out, HasSubstr("between launches"));
  EXPECT_THAT(result.out, HasSubstr("trace: job.trace.json"));
  const Json json = Json::parse(read("profile.json"));
  EXPECT_EQ(json["steps"], 4);
  double share = json["idle_seconds"].get<double>() / json["seconds_per_step"].get<double>();
  bool has_model_line = false;
  for (const Json& kernel : json["kernels"]) {
    share += kernel["share"].get<double>();
    has_model_line |= kernel["location"].get<std::string>().find("language/gpt.cpp:") == 0;
    EXPECT_GE(kernel["launches"], 1);
  }
  EXPECT_GE(share, 1 - 1e-6);
  EXPECT_TRUE(has_model_line);

  const Json trace = Json::parse(read("job.trace.json"));
  std::set<int> rows;
  int steps = 0;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.contains("ph") && event.contains("tid") && event.contains("name"));
    if (event["ph"] != "X") continue;
    rows.insert(event["tid"].get<int>());
    EXPECT_GE(event["ts"], 0);
    EXPECT_GE(event["dur"], 0);
    steps += event["name"].get<std::string>().find("step ") == 0 ? 1 : 0;
  }
  EXPECT_EQ(steps, 4);
  EXPECT_TRUE(rows.contains(0) && rows.contains(2)) << "worker 0, and the steps' own row";
  EXPECT_EQ(trace["otherData"]["dropped_events"], 0);
}

TEST_F(MeasureTest, TracesAreBounded) {
  const CommandResult result =
      command({"profile", "job.yaml", "--vocabulary", "20", "--wait", "0", "--active", "600",
               "--repeat", "1", "--trace", "long.json", "--trace-mebibytes", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string text = read("long.json");
  EXPECT_LE(text.size(), size_t{1} << 20);
  const Json trace = Json::parse(text);
  EXPECT_GT(trace["otherData"]["dropped_events"], 0);
  EXPECT_THAT(result.out, HasSubstr("without room (--trace-mebibytes)"));
}

TEST_F(MeasureTest, TracesCanBeLeftOut) {
  const auto before = folder_contents(folder_.path());
  const CommandResult result = command({"profile", "job.yaml", "--vocabulary", "20", "--trace", "",
                                        "--active", "1", "--repeat", "1", "--top", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("kernels more"));
  EXPECT_THAT(result.out, Not(HasSubstr("trace:")));
  EXPECT_EQ(folder_contents(folder_.path()), before) << "nothing is left behind";
}

TEST_F(MeasureTest, BadArgumentsOfProfileAreExplained) {
  EXPECT_EQ(command({"profile", "job.yaml"}).exit_code, 2);
  EXPECT_EQ(command({"profile", "job.yaml", "--vocabulary", "9", "--active", "0"}).exit_code, 2);
  const CommandResult folder =
      command({"profile", "job.yaml", "--vocabulary", "9", "--trace", "nowhere/trace.json"});
  EXPECT_EQ(folder.exit_code, 3);
  EXPECT_THAT(folder.err, HasSubstr("there is no folder nowhere"));
  const CommandResult unknown = command({"profile", "job.yaml", "--repeats", "3"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean '--repeat'?"));
}

TEST_F(MeasureTest, PlanDrawsWhatLivesWhen) {
  const CommandResult result = command({"plan", "job.yaml", "--vocabulary", "20", "--timeline"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("live (launch "));
  EXPECT_THAT(result.out, HasSubstr("layers.0"));
}

TEST_F(MeasureTest, ParallelMicrobatchesAreTold) {
  for (const char* name : {"plan", "profile", "bench"}) {
    std::vector<std::string> arguments = {name, "job.yaml", "engine.parallel_microbatches=2",
                                          "--vocabulary", "20"};
    if (std::string(name) == "bench")
      arguments.insert(arguments.end(), kShort.begin(), kShort.end());
    const CommandResult result = command(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("4 x 8 tokens in 2 parallel microbatches")) << name;
  }
}

}  // namespace
}  // namespace fullbore
