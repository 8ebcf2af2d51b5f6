// How settings are tuned: what is tried, how candidates race, what is found of a machine that is made up, and what is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/seal.h"
#include "fullbore/lab/tuning/prediction_error.h"
#include "fullbore/lab/tuning/race.h"
#include "fullbore/lab/tuning/tune.h"
#include "fullbore/lab/tuning/tuning_file.h"
#include "fullbore/lab/tuning/tuning_report.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Config job() {
  Config config;
  config.train.steps = 1000;
  return config;
}

std::vector<std::string> names(const TuningPoint& point) {
  std::vector<std::string> list;
  for (const Switch& each : point) list.push_back(choice_name(each));
  return list;
}

TEST(TuningSpace, IsBatchSizesThatAreAllowedChoicesOfTheEngineThreadsPartsAndPasses) {
  const std::vector<Coordinate> space =
      tuning_space(job(), {.switches = {}, .batch_sizes = "8,16", .processors = 6});
  std::map<std::string, std::vector<std::string>> of;
  for (const Coordinate& each : space) of[each.name] = names(each.choices);
  EXPECT_EQ(space.front().name, "train.batch_size");
  EXPECT_EQ(space.back().name, "passes");
  EXPECT_THAT(of["train.batch_size"], ElementsAre("train.batch_size=8", "train.batch_size=16"));
  EXPECT_THAT(of["engine.precision"],
              ElementsAre("engine.precision=bf16", "engine.precision=fp16"));
  // All six processors are what 0 threads are.
  EXPECT_THAT(of["engine.threads"],
              ElementsAre("engine.threads=1", "engine.threads=2", "engine.threads=4"));
  EXPECT_THAT(of["engine.accumulate"],
              ElementsAre("engine.accumulate=2", "engine.accumulate=4", "engine.accumulate=8"));
  EXPECT_THAT(of["passes"], ::testing::Contains("without fuse"));
  EXPECT_FALSE(of.contains("engine.row_invariant")) << "a promise, not a speed";
  EXPECT_FALSE(of.contains("engine.compile")) << "of starts, and for debugging";
  EXPECT_FALSE(of.contains("engine.device"));

  const std::vector<Coordinate> asked = tuning_space(
      job(), {.switches = {"fuse", "engine.threads"}, .batch_sizes = "", .processors = 2});
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(names(asked[1].choices), ElementsAre("engine.threads=1"));
  EXPECT_THROW(tuning_space(job(), {.switches = {"fuze"}, .batch_sizes = "", .processors = 1}),
               UsageError);
  EXPECT_THROW(tuning_space(job(), {.switches = {}, .batch_sizes = "-2", .processors = 1}),
               UsageError);
}

TEST(TuningSpace, TakesWhatNobodyHasSpokenOfForAChangeOfNumbers) {
  const auto numbers = [](const char* key) { return numbers_of({"x", key, "1", ""}); };
  EXPECT_EQ(numbers(""), Numbers::kept) << "a pass";
  EXPECT_EQ(numbers("engine.threads"), Numbers::kept);
  EXPECT_EQ(numbers("engine.accumulate"), Numbers::kept);
  EXPECT_EQ(numbers("engine.precision"), Numbers::changed);
  EXPECT_EQ(numbers("engine.moments"), Numbers::changed);
  EXPECT_EQ(numbers("optim.learning_rate"), Numbers::changed);
  EXPECT_EQ(numbers("train.batch_size"), Numbers::another_batch);
}

TEST(TuningPoints, HaveOneValueOfAKeyAndKeepPassesThatAreLeftOutAlready) {
  Config config = job();
  config.engine.disabled_passes = {"order_nodes"};
  const Switch bf16{"engine.precision=bf16", "engine.precision", "bf16", "fp32"};
  const Switch fp16{"engine.precision=fp16", "engine.precision", "fp16", "fp32"};
  const Switch fuse{"fuse", "", "", "not run"};
  const TuningPoint point = with(with(with({}, bf16), fuse), fp16);
  EXPECT_THAT(point_settings(point, config),
              ElementsAre("engine.precision=fp16", "engine.disabled_passes=[order_nodes, fuse]"));
  EXPECT_THAT(names(that_keep_numbers(point)), ElementsAre("without fuse"));
  EXPECT_THAT(point_settings({}, config), IsEmpty());
}

std::vector<HeatFigure> heats(const std::vector<double>& differences) {
  std::vector<HeatFigure> all;
  for (const double each : differences) all.push_back({each, 0.001});
  return all;
}

TEST(Race, DropsWhoIsSlowerOrCannotBeFasterAndTakesWhoIsFasterBeyondItsInterval) {
  const std::vector<RaceState> first =
      race_states({heats({0.2}), heats({-0.2}), heats({0.01}), heats({0.042})}, {}, false);
  EXPECT_THAT(first, ElementsAre(RaceState::slower, RaceState::running, RaceState::running,
                                 RaceState::no_difference));
  const std::vector<RaceState> third = race_states(
      {heats({-0.2, -0.21, -0.19}), heats({-0.01, 0.01, -0.02}), heats({0.01, -0.01, 0.0})}, {},
      false);
  EXPECT_THAT(third, ElementsAre(RaceState::faster, RaceState::running, RaceState::no_difference));
  // Of values of one key those behind the best are out.
  EXPECT_THAT(race_states({heats({-0.2, -0.21}), heats({-0.1, -0.11})}, {}, true),
              ElementsAre(RaceState::running, RaceState::behind));
  // After the last heat nobody runs on.
  EXPECT_THAT(race_states({heats({-0.02, 0.02, -0.04, 0.01, -0.04})}, {}, false),
              ElementsAre(RaceState::no_difference));
  // What turns tell of a heat's own error is heard.
  EXPECT_THAT(race_states({{{0.2, 0.1}}}, {}, false), ElementsAre(RaceState::running));
}

TEST(Race, RarelyTakesWhatDoesNotDiffer) {
  PhiloxStream draws(7);
  const auto noise = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(draws.below(1'000'000)) / 1e6;
    return 0.015 * sum;
  };
  constexpr int kRaces = 400;
  int taken = 0;
  for (int race = 0; race < kRaces; ++race) {
    std::vector<std::vector<HeatFigure>> all(4);
    for (int64_t heat = 0; heat < kMostHeats; ++heat) {
      for (std::vector<HeatFigure>& each : all) each.push_back({noise(), 0.002});
      const std::vector<RaceState> states = race_states(all, {}, false);
      if (std::ranges::find(states, RaceState::faster) == states.end()) continue;
      ++taken;
      break;
    }
  }
  // 1 % a look, three looks.
  EXPECT_LT(taken, kRaces * 3 / 100);
}

TEST(Predictions, AreJudgedByMedianWorstAndRank) {
  const PredictionError error = prediction_error(
      std::vector<Prediction>{{"a", 1, 2}, {"b", 2, 2.5}, {"c", 3, 4}, {"d", 0, 1}});
  EXPECT_EQ(error.count, 3U);
  EXPECT_DOUBLE_EQ(error.median, 0.25);
  EXPECT_DOUBLE_EQ(error.worst, 0.5);
  EXPECT_EQ(error.worst_name, "a");
  EXPECT_DOUBLE_EQ(error.rank_correlation, 1);
  const PredictionError reversed =
      prediction_error(std::vector<Prediction>{{"a", 3, 2}, {"b", 2, 2}, {"c", 1, 4}});
  EXPECT_NEAR(reversed.rank_correlation, -std::sqrt(0.75), 1e-12);
  EXPECT_TRUE(std::isnan(prediction_error({}).median));
}

/// A machine whose programs take the times that are planted, each process by another percent.
class MadeUpBench : public TuningBench {
 public:
  std::map<std::string, double> factors;  ///< of time, by the choice's name
  std::map<std::string, std::string> refused;
  std::string base_refused;
  std::map<std::string, double> run_seconds;  ///< by the choice's name, beside one
  double spread = 0.005;
  int64_t heats = 0;

  ArmPlan plan(const TuningPoint& point) override {
    ArmPlan plan{.planned_bytes = 100, .process_bytes = 10, .roofline_seconds = 0.005};
    if (point.empty()) plan.refused = base_refused;
    for (const std::string& name : names(point)) {
      if (refused.contains(name)) plan.refused = refused[name];
      if (factors.contains(name)) plan.fingerprint += name + ' ';
    }
    return plan;
  }
  std::vector<MeasuredRun> heat(const std::vector<TuningPoint>& points, int64_t steps,
                                const HeatLimits& limits) override {
    ++heats;
    EXPECT_GT(limits.turn_seconds, 0);
    EXPECT_GT(limits.seconds, 0);
    std::vector<MeasuredRun> runs;
    for (const TuningPoint& point : points) {
      MeasuredRun& run = runs.emplace_back();
      double seconds = 0.01 * (1 + spread * (static_cast<double>(draws_.below(2001)) / 1000 - 1));
      for (const std::string& name : names(point))
        if (factors.contains(name)) seconds *= factors[name];
      if (seconds > 1) run.reason = "exit code 1: it fails";
      run.samples_per_step = 4;
      run.resident_peak_bytes = 90;
      for (int64_t step = 0; step < steps; ++step) run.step_seconds.push_back(seconds);
      for (int64_t turn = 0; turn < steps; turn += turn < 1 ? 1 : 2) run.turns.push_back(turn);
    }
    auto taken = static_cast<double>(points.size());
    for (const TuningPoint& point : points)
      for (const std::string& name : names(point))
        if (run_seconds.contains(name)) taken += run_seconds[name];
    if (taken > limits.seconds)
      for (MeasuredRun& run : runs) run.reason = "not done within so many seconds";
    seconds_ += std::min(taken, limits.seconds);
    return runs;
  }
  double seconds() const override { return seconds_; }

 private:
  PhiloxStream draws_{3};
  double seconds_ = 0;
};

Tuning searched(MadeUpBench& bench, const TuningScope& scope, SearchOptions options = {},
                const StopRequest& stop = {}) {
  options.most_steps = 1000;
  return search_tuning(job(), tuning_space(job(), scope), options, bench, stop, {});
}

std::map<std::string, TuningVerdict> verdicts(const Tuning& tuning) {
  std::map<std::string, TuningVerdict> all;
  for (const TuningRow& row : tuning.rows) all[choice_name(row.choice)] = row.verdict;
  return all;
}

TEST(TuningSearch, FindsWhatIsPlantedAndDeclinesTheRest) {
  MadeUpBench bench;
  bench.factors = {{"engine.precision=bf16", 0.6},
                   {"engine.precision=fp16", 0.8},
                   {"engine.attention=decomposed", 1.1},
                   {"engine.recompute=full", 1.0},
                   {"engine.threads=1", 200},
                   {"without fuse", 1.5},
                   {"without order_nodes", 0.9},
                   {"without prepack_operands", 0.85}};
  bench.refused = {{"engine.accumulate=8", "exit code 2: no such parts"},
                   {"engine.accumulate=4", "exit code 5: too large"}};
  const Tuning tuning =
      searched(bench, {.switches = {}, .batch_sizes = "", .processors = 2}, {.seconds = 1e6});
  EXPECT_THAT(names(tuning.taken), ElementsAre("engine.precision=bf16", "without prepack_operands",
                                               "without order_nodes"));
  std::map<std::string, TuningVerdict> all = verdicts(tuning);
  EXPECT_EQ(all["engine.precision=fp16"], TuningVerdict::slower);
  EXPECT_EQ(all["engine.attention=decomposed"], TuningVerdict::slower);
  EXPECT_EQ(all["engine.recompute=full"], TuningVerdict::no_difference);
  EXPECT_EQ(all["engine.recompute=auto"], TuningVerdict::same_program);
  EXPECT_EQ(all["engine.threads=1"], TuningVerdict::failed);
  EXPECT_EQ(all["engine.accumulate=8"], TuningVerdict::refused);
  EXPECT_EQ(all["engine.accumulate=4"], TuningVerdict::does_not_fit);
  EXPECT_EQ(all["without fuse"], TuningVerdict::slower);
  EXPECT_FALSE(tuning.out_of_time);
  // Steps at the base's pace: 10 ms of it, 6 ms in bf16, and what comes after that is measured beside it.
  EXPECT_NEAR(tuning.base.measured_seconds, 0.01, 2e-4);
  for (const TuningRow& row : tuning.rows) {
    if (row.choice.name == "engine.precision=bf16") {
      EXPECT_NEAR(row.measured_seconds, 0.006, 2e-4);
    }
    if (row.choice.name == "fuse") {
      EXPECT_NEAR(row.measured_seconds, 0.009, 3e-4);
    }
    if (row.verdict == TuningVerdict::same_program) {
      EXPECT_TRUE(std::isnan(row.measured_seconds));
    }
  }
  for (const TuningRow& row : tuning.rows) {
    if (row.verdict == TuningVerdict::taken) {
      EXPECT_LT(row.high, 0) << row.choice.name;
      EXPECT_GE(row.heats, kLeastHeats);
    }
  }
}

TEST(TuningSearch, TakesWhatChangesNumbersOnlyWhereThatIsAllowed) {
  const TuningScope scope{.switches = {"engine.precision"}, .batch_sizes = "", .processors = 1};
  MadeUpBench bench;
  bench.factors = {{"engine.precision=bf16", 0.6}, {"engine.precision=fp16", 1.2}};
  const Tuning same = searched(bench, scope, {.quality = TuningQuality::same});
  EXPECT_THAT(same.taken, IsEmpty());
  EXPECT_EQ(verdicts(same)["engine.precision=bf16"], TuningVerdict::not_allowed);
  EXPECT_EQ(searched(bench, scope, {.quality = TuningQuality::any}).taken.size(), 1U);
  // Beside another batch size nothing tells its quality.
  MadeUpBench batches = bench;
  batches.factors["train.batch_size=24"] = 0.5;
  TuningScope larger = scope;
  larger.batch_sizes = "24";
  const Tuning both = searched(batches, larger);
  EXPECT_THAT(names(both.taken), ElementsAre("train.batch_size=24"));
  EXPECT_EQ(verdicts(both)["engine.precision=bf16"], TuningVerdict::not_allowed);
}

TEST(TuningSearch, BeginsWithWhatFitsAndEndsWhenTimeOrPatienceDoes) {
  const TuningScope scope{.switches = {"fuse", "order_nodes"}, .batch_sizes = "", .processors = 1};
  MadeUpBench bench;
  bench.factors = {{"without fuse", 0.5}, {"without order_nodes", 1.0}};
  bench.base_refused = "exit code 5: 3 GiB";
  bench.refused = {{"engine.parallel_microbatches=1", "exit code 5: 2 GiB"}};
  const Tuning tuning = searched(bench, scope);
  EXPECT_THAT(names(tuning.start), ElementsAre("engine.recompute=auto"));
  EXPECT_THAT(names(tuning.taken), ElementsAre("engine.recompute=auto", "without fuse"));
  EXPECT_THAT(tuning.start_reason, HasSubstr("3 GiB"));
  for (const char* name :
       {"engine.recompute=auto", "engine.recompute=full", "engine.accumulate=auto"})
    bench.refused[name] = "exit code 5: 2 GiB";
  EXPECT_THROW(searched(bench, scope), MemoryError);

  MadeUpBench brief;
  brief.factors = bench.factors;
  const Tuning late = searched(brief, scope, {.seconds = 5});
  EXPECT_TRUE(late.out_of_time);
  EXPECT_THAT(late.taken, IsEmpty());
  EXPECT_EQ(verdicts(late)["without fuse"], TuningVerdict::no_time);
  EXPECT_EQ(verdicts(searched(brief, scope, {.steps = 2}))["without fuse"],
            TuningVerdict::no_difference);
  EXPECT_TRUE(searched(brief, scope, {}, [&] { return brief.heats > 3; }).interrupted);
}

TEST(TuningSearch, ACandidateThatTakesForEverCostsNoMoreThanTheTimeThereIs) {
  MadeUpBench bench;
  bench.factors = {{"without fuse", 0.5}};
  bench.run_seconds = {{"without fuse", 1e6}};
  const Tuning tuning =
      searched(bench, {.switches = {"fuse"}, .batch_sizes = "", .processors = 1}, {.seconds = 100});
  EXPECT_EQ(verdicts(tuning)["without fuse"], TuningVerdict::no_time);
  EXPECT_TRUE(tuning.out_of_time);
  EXPECT_LE(bench.seconds(), 100);
}

/// A tuning of two candidates, of which one was taken.
Tuning found() {
  MadeUpBench bench;
  bench.factors = {{"engine.precision=bf16", 0.6}, {"without fuse", 0.7}};
  Tuning tuning = searched(
      bench, {.switches = {"engine.precision=bf16", "fuse"}, .batch_sizes = "", .processors = 1});
  tuning.identity = "0123";
  tuning.machine = "a machine";
  tuning.when = "2026-11-26T00:00:00Z";
  tuning.config = "c.yaml";
  return tuning;
}

TuningTrial trial_of(TuningPoint point, std::string reason, double difference) {
  TuningTrial trial;
  trial.point = std::move(point);
  trial.reason = std::move(reason);
  trial.difference = difference;
  trial.low = difference - 0.01;
  trial.high = difference + 0.01;
  trial.runs = 4;
  return trial;
}

TEST(TuningConfirmation, DeclinesWhatIsNotFasterAgainAndKeepsWhatIs) {
  const Tuning before = found();
  ASSERT_EQ(before.taken.size(), 2U);
  const TuningPoint kept = that_keep_numbers(before.taken);

  Tuning all = before;
  conclude_tuning(all, {trial_of(before.taken, "", -0.8), trial_of(kept, "", -0.3)});
  EXPECT_EQ(all.taken, before.taken);
  ASSERT_NE(all.winner(), nullptr);
  EXPECT_THAT(tuning_text(all), HasSubstr("Tuned: engine.precision=bf16, without fuse."));
  // Somewhat less than 100 s, and of each step of 10 ms half is saved.
  all.seconds = 99.999;
  all.base.measured_seconds = 0.01;
  all.trials[0].difference = std::log(0.5);
  EXPECT_EQ(tuning_payback_step(all), 20000);
  EXPECT_THAT(tuning_text(all), HasSubstr("has paid for itself after step 20000."));
  EXPECT_EQ(tuning_report_json(all)["payback_step"], 20000);

  Tuning some = before;
  conclude_tuning(
      some, {trial_of(before.taken, "quality: loss is undecided", -0.8), trial_of(kept, "", -0.3)});
  EXPECT_EQ(some.taken, kept);
  EXPECT_EQ(verdicts(some)["engine.precision=bf16"], TuningVerdict::worse);
  EXPECT_EQ(verdicts(some)["without fuse"], TuningVerdict::taken);

  Tuning none = before;
  conclude_tuning(none, {trial_of(before.taken, "not faster", 0), trial_of(kept, "not faster", 0)});
  EXPECT_THAT(none.taken, IsEmpty());
  EXPECT_EQ(verdicts(none)["without fuse"], TuningVerdict::not_confirmed);
  EXPECT_EQ(none.winner(), nullptr);
  EXPECT_TRUE(std::isnan(tuning_payback_step(none)));
  EXPECT_THAT(tuning_text(none), Not(HasSubstr("paid for itself")));
  EXPECT_THAT(tuning_text(none), HasSubstr("Nothing is shown to be faster: as configured stays."));
}

TEST(TuningFile, IsReadAgainAsItWasAndWhatIsDamagedForeignOrChoosesOtherThingsIsNone) {
  const testing::ScratchFolder folder;
  const TuningScope scope{
      .switches = {"engine.precision=bf16", "fuse"}, .batch_sizes = "", .processors = 1};
  const std::vector<Coordinate> space = tuning_space(job(), scope);
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto again = [&](const std::string& identity) {
    warnings.clear();
    return kept_tuning(folder.path(), identity, job(), space, warn);
  };
  Tuning tuning = found();
  conclude_tuning(tuning, {trial_of(tuning.taken, "", -0.8)});
  EXPECT_FALSE(again(tuning.identity).has_value());
  EXPECT_THAT(warnings, IsEmpty()) << "nothing was kept";
  keep_tuning(folder.path(), tuning, warn);
  const std::optional<Tuning> back = again(tuning.identity);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(to_json(*back).dump(), to_json(tuning).dump());

  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    path = entry.path().string();
  const std::string whole = read_file(path).value();
  const auto refused = [&](const std::string& text, const char* why) {
    write_file_atomically(path, text).take_or_throw();
    EXPECT_FALSE(again(tuning.identity).has_value());
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_THAT(warnings[0], HasSubstr(why));
  };
  refused(whole.substr(0, whole.size() / 2), "damaged");
  const auto sealed = [&](const Tuning& other) { return seal_json(to_json(other).dump(2) + '\n'); };
  Tuning other = tuning;
  other.identity = "another";
  refused(sealed(other), "another job or machine");
  other = tuning;
  other.taken.push_back({"x", "engine.cache_dir", "/elsewhere", ""});
  refused(sealed(other), "chooses what is not to be tuned");
  other = tuning;
  other.start = {{"x", "run.dir", "/elsewhere", ""}};
  refused(sealed(other), "chooses what is not to be tuned");
}

TEST(TuningIdentity, IsOfMachineJobAndQuestionAndNotOfARunsName) {
  const TuningScope scope;
  const auto identity = [&](const Config& config, const std::string& machine) {
    return tuning_identity(config, scope, TuningQuality::margin, machine);
  };
  Config named = job();
  named.run.name = "other";
  named.log.interval = 3;
  EXPECT_EQ(identity(named, "m"), identity(job(), "m"));
  EXPECT_NE(identity(job(), "m"), identity(job(), "n"));
  EXPECT_NE(identity(job(), "m"), tuning_identity(job(), scope, TuningQuality::any, "m"));
  Config larger = job();
  larger.train.batch_size = 99;
  EXPECT_NE(identity(larger, "m"), identity(job(), "m"));
}

}  // namespace
}  // namespace fullbore
