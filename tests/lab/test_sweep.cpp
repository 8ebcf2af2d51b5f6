#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/lab/sweep/sweep_report.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSpace = R"(sweep:
  config: job.yaml
  settings: [train.steps=90]
  method: random
  samples: 200
optim:
  learning_rate: log 1e-4 1e-2
  beta2: uniform 0.9 0.99
  name: [adamw, lion]
train:
  batch_size: whole 2 4
)";

std::string complaint(const std::string& yaml) {
  try {
    parse_sweep_space(yaml, "space.yaml");
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(SweepSpace, DrawsWithinItsRangesAndTheSameForASeed) {
  const SweepSpace space = parse_sweep_space(kSpace, "space.yaml");
  EXPECT_EQ(space.config, "job.yaml");
  const SweepTrials trials = sweep_trials(space);
  ASSERT_EQ(trials.size(), 200U);
  EXPECT_EQ(trials, sweep_trials(space));
  int below = 0;
  std::set<std::string> names, batches;
  for (const std::vector<std::string>& trial : trials) {
    const double rate = std::stod(trial[0]), beta = std::stod(trial[1]);
    EXPECT_TRUE(rate >= 1e-4 && rate <= 1e-2) << rate;
    EXPECT_TRUE(beta >= 0.9 && beta <= 0.99) << beta;
    below += rate < 1e-3 ? 1 : 0;
    names.insert(trial[2]);
    batches.insert(trial[3]);
  }
  // Half of them, with a deviation of 7.
  EXPECT_TRUE(below > 65 && below < 135) << below;
  EXPECT_THAT(names, ElementsAre("adamw", "lion"));
  EXPECT_THAT(batches, ElementsAre("2", "3", "4"));
  EXPECT_THAT(trial_settings(space, {"1e-3", "0.9", "lion", "2"}),
              ElementsAre("train.steps=90", "optim.learning_rate=1e-3", "optim.beta2=0.9",
                          "optim.name=lion", "train.batch_size=2"));
}

TEST(SweepSpace, AGridHasAllCombinations) {
  const SweepSpace space = parse_sweep_space(
      "sweep:\n  config: j\n  method: grid\noptim:\n  name: [adamw, lion]\ntrain:\n  batch_size: "
      "whole 1 3\n",
      "s");
  const SweepTrials trials = sweep_trials(space);
  ASSERT_EQ(trials.size(), 6U);
  EXPECT_THAT(trials[4], ElementsAre("lion", "2"));
  EXPECT_THROW(sweep_trials(parse_sweep_space(
                   "sweep:\n  config: j\n  method: grid\ntrain:\n  batch_size: whole 1 "
                   "1000000\n",
                   "s")),
               UsageError);
}

TEST(SweepSpace, RefusesWithTheLineAndTheNearestName) {
  const std::string sweep = "sweep:\n  config: j\n";
  EXPECT_THAT(complaint(""), HasSubstr("space.yaml: sweep.config is missing"));
  EXPECT_THAT(complaint(sweep), HasSubstr("nothing varies"));
  EXPECT_THAT(complaint(sweep + "  metod: grid\n"),
              HasSubstr("space.yaml:3: there is no key sweep.metod. Did you mean 'method'?"));
  EXPECT_THAT(complaint(sweep + "  method: girds\n"), HasSubstr("one of grid, random, halving"));
  EXPECT_THAT(complaint(sweep + "  samples: 0\n"), HasSubstr("from 1 to 100000"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rat: [1]\n"),
              HasSubstr("Did you mean 'optim.learning_rate'?"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: []\n"),
              HasSubstr("space.yaml:4: optim.learning_rate: there is nothing"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: [1, -1]\n"),
              HasSubstr("'-1'; a number in [0, "));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: [1, 1]\n"), HasSubstr("twice"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: log 0 1\n"), HasSubstr("begins above 0"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: uniform 2 1\n"),
              HasSubstr("is no range"));
  EXPECT_THAT(complaint(sweep + "optim:\n  beta1: uniform 0 2\n"), HasSubstr("optim.beta1 '2'"));
  EXPECT_THAT(complaint(sweep + "optim:\n  learning_rate: 0.1\n"),
              HasSubstr("\"uniform LOW HIGH\""));
  EXPECT_THAT(complaint(sweep + "train:\n  batch_size: whole 1.5 2\n"), HasSubstr("whole numbers"));
  EXPECT_THAT(complaint(sweep + "  method: grid\noptim:\n  beta1: uniform 0 0.5\n"),
              HasSubstr("a grid has all values"));
  EXPECT_THAT(complaint(sweep + "run:\n  dir: [a, b]\n"), HasSubstr("the sweep's own"));
}

TEST(SweepRounds, OneOfThreeGoesOnWithThreeTimesTheSteps) {
  SweepSpace space = parse_sweep_space(kSpace, "s");
  EXPECT_THAT(sweep_rounds(space, 900), ElementsAre(900));
  space.method = SweepSpace::Method::halving;
  EXPECT_THAT(sweep_rounds(space, 900), ElementsAre(100, 300, 900));
  space.samples = 2;
  EXPECT_THAT(sweep_rounds(space, 900), ElementsAre(300, 900)) << "one is left behind the first";
  space.least_steps = 1000;
  EXPECT_THAT(sweep_rounds(space, 900), ElementsAre(900));
}

SweepRun run_of(int64_t trial, double value, int64_t round = 0) {
  SweepRun run;
  run.trial = trial;
  run.round = round;
  run.value = value;
  run.curve = {{10, 2 * value}, {20, value}};
  return run;
}

TEST(SweepRounds, TheBestGoOnAndFailuresDoNot) {
  SweepSpace space;
  std::vector<SweepRun> runs = {run_of(0, 3), run_of(1, 1), run_of(2, 2), run_of(3, 0.5)};
  runs[3].reason = "killed";
  EXPECT_THAT(survivors(runs, space), ElementsAre(1));
  runs.push_back(run_of(4, 1.5));
  EXPECT_THAT(survivors(runs, space), ElementsAre(1, 4));
  space.higher_is_better = true;
  EXPECT_THAT(survivors(runs, space), ElementsAre(0, 2));
}

TEST(SweepRuns, AreReadAsTheyWereWrittenAndDamageIsSeen) {
  const testing::ScratchFolder folder;
  const std::string path = folder / "0-7.json";
  SweepRun run = run_of(7, 1.25);
  write_sweep_run(path, run).take_or_throw();
  const SweepRun back = read_sweep_run(path).take_or_throw();
  EXPECT_EQ(back.trial, 7);
  EXPECT_EQ(back.value, 1.25);
  EXPECT_EQ(back.curve, run.curve);
  std::string text = read_file(path).value();
  text[text.find("1.25")] = '9';
  EXPECT_FALSE(parse_sweep_run(text, path).ok());
  run.value = SweepRun::kUnknown;
  write_sweep_run(path, run).take_or_throw();
  EXPECT_FALSE(read_sweep_run(path).ok()) << "no value, and no reason for it";
}

// A folder that somebody else has made: what would be written and removed in it must not lie elsewhere.
TEST(SweepRuns, StayInTheirFolder) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directories(folder / "elsewhere");
  std::filesystem::create_directories(folder / "out");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "out/runs");
  SweepRequest request;
  request.space = parse_sweep_space(kSpace, "s");
  request.folder = folder / "out";
  request.most_steps = 1;
  // Stopped before its first run, were it to come so far.
  EXPECT_THROW(run_sweep(
                   request, [] { return true; }, [](const std::string&) {}),
               Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "elsewhere"));
}

TEST(SweepReport, RanksLaterRoundsFirstAndStandsAlone) {
  const SweepSpace space = parse_sweep_space(kSpace, "s");
  Sweep sweep;
  sweep.trials = {
      {"1e-4", "0.9", "adamw", "2"}, {"1e-3", "0.95", "lion", "3"}, {"1e-2", "0.99", "lion", "4"}};
  sweep.rounds = {30, 90};
  SweepRun failed = run_of(2, SweepRun::kUnknown);
  failed.reason = "exit code 5: <b>";
  sweep.runs = {{run_of(0, 1), run_of(1, 2), failed}, {run_of(1, 1.5, 1)}};
  const std::vector<SweepRow> rows = ranked(sweep, space);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].trial, 1);
  EXPECT_EQ(rows[1].trial, 0);
  EXPECT_EQ(rows[2].trial, 2);
  const std::string page = sweep_page(sweep, space);
  EXPECT_THAT(page, HasSubstr("exit code 5: &lt;b&gt;"));
  EXPECT_THAT(page, HasSubstr("<polyline class=\"best\""));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(sweep_markdown(sweep, space), HasSubstr("Trial 2: exit code 5"));
  // Of those with a value 1e-3 is above and 1e-4 below.
  const std::string axes = parallel_coordinates(sweep, space);
  EXPECT_THAT(axes, HasSubstr("class=\"best\" points=\"70.0,44.0 "));
  EXPECT_THAT(axes, HasSubstr("class=\"best\" points=\"70.0,296.0 "));
}

}  // namespace
}  // namespace fullbore
