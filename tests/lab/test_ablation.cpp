// What an ablation is made of: switches and arms, how time is spent, what is kept, and what differences are called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/lab/ablation/ablation_plan.h"
#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/ablation/arm_search.h"
#include "fullbore/lab/ablation/effects.h"
#include "fullbore/lab/ablation/switches.h"
#include "fullbore/lab/report_table.h"
#include "fullbore/passes/pass.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config job() {
  Config config;
  config.train.steps = 1000;
  return config;
}

std::string refusal(const std::string& text) {
  try {
    parse_switch(text, job());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> names(const std::vector<Switch>& switches) {
  std::vector<std::string> list;
  for (const Switch& each : switches) list.push_back(each.name);
  return list;
}

TEST(Switches, AreAllOptionalPassesAndEngineChoicesThatARegistryHas) {
  const std::vector<std::string> all = names(known_switches(job()));
  for (const Pass& pass : pipeline())
    EXPECT_EQ(std::ranges::count(all, pass.name), pass.optional ? 1 : 0) << pass.name;
  EXPECT_THAT(all, ::testing::IsSupersetOf({"engine.precision=bf16", "engine.precision=fp16",
                                            "engine.attention=decomposed", "engine.recompute=full",
                                            "engine.row_invariant=true", "engine.moments=int8",
                                            "engine.master_weights=false"}));
  // What is for debugging is measured where somebody asks for it.
  EXPECT_EQ(std::ranges::count(all, "engine.compile=fast"), 1);
  EXPECT_EQ(std::ranges::count(all, "engine.compile=off"), 0);
  EXPECT_THAT(names(parse_switch("engine.compile", job())),
              ElementsAre("engine.compile=fast", "engine.compile=off"));
  // Where a run is made is no switch, and what is configured is none either.
  for (const std::string& name : all) {
    EXPECT_THAT(name, ::testing::Not(::testing::StartsWith("engine.device")));
    EXPECT_NE(name, "engine.precision=fp32");
  }
}

// An arm of tf32 would be refused on a processor, and end the comparison.
TEST(Switches, OfCardsAreThoseOfACardAlone) {
  Config config = job();
  config.engine.device = "cpu";
  EXPECT_EQ(std::ranges::count(names(known_switches(config)), "engine.precision=tf32"), 0);
  EXPECT_THAT(names(parse_switch("engine.precision=tf32", config)),
              ElementsAre("engine.precision=tf32"))
      << "asked for by name";
  for (const char* const device : {"cuda", "cuda:1"}) {
    config.engine.device = device;
    EXPECT_EQ(std::ranges::count(names(known_switches(config)), "engine.precision=tf32"), 1);
    EXPECT_THAT(
        names(parse_switch("engine.precision", config)),
        ElementsAre("engine.precision=tf32", "engine.precision=bf16", "engine.precision=fp16"));
  }
}

TEST(Switches, AreReadFromTheCommandLine) {
  EXPECT_THAT(names(parse_switch("fuse", job())), ElementsAre("fuse"));
  EXPECT_THAT(names(parse_switch("optim.name=adamw,muon,sgd", job())),
              ElementsAre("optim.name=muon", "optim.name=sgd"));
  EXPECT_THAT(names(parse_switch("engine.precision", job())),
              ElementsAre("engine.precision=bf16", "engine.precision=fp16"));
  EXPECT_THAT(names(parse_switch("train.batch_size=12,24,024", job())),
              ElementsAre("train.batch_size=24"));
  EXPECT_THAT(names(parse_switch("engine.degrade=[recompute,accumulate],[recompute]", job())),
              ElementsAre("engine.degrade=[recompute,accumulate]", "engine.degrade=[recompute]"));
}

TEST(Switches, ThatCannotBeAreRefusedWithWhatWouldDo) {
  EXPECT_THAT(refusal("fuze"), HasSubstr("Did you mean 'fuse'?"));
  EXPECT_THAT(refusal("train.batchsize=3"), HasSubstr("Did you mean 'train.batch_size'?"));
  EXPECT_THAT(refusal("expand_composites"), HasSubstr("cannot be switched off"));
  EXPECT_THAT(refusal("fuse=off"), HasSubstr("a pass has no value"));
  EXPECT_THAT(refusal("engine.precision=fp8"), HasSubstr("expected one of fp32, tf32, bf16, fp16"));
  EXPECT_THAT(refusal("train.batch_size"), HasSubstr("which values?"));
  EXPECT_THAT(refusal("train.batch_size=12"), HasSubstr("what the configuration says already"));
  EXPECT_THAT(refusal("engine.device=null"), HasSubstr("says where a run is made"));
  EXPECT_THAT(refusal("run.seed=3"), HasSubstr("says where a run is made"));
  EXPECT_THAT(refusal(""), HasSubstr("no such pass or key"));
}

TEST(Arms, AreEachAloneEachLeftOutAndBothLadders) {
  const std::vector<Switch> switches = {{"a", "", "", ""}, {"b", "", "", ""}, {"c", "", "", ""}};
  std::vector<std::string> list;
  std::set<std::vector<bool>> different;
  for (const Arm& arm : ablation_arms(switches, {true, true, true})) {
    list.push_back(arm.name);
    different.insert(arm.on);
  }
  // 4n + 2 of which equal ones are made once: of three switches all eight subsets are left.
  EXPECT_THAT(list,
              ElementsAre("base", "as configured", "+a", "+b", "+c", "all-a", "all-b", "all-c"));
  EXPECT_EQ(different.size(), list.size());
}

TEST(Arms, SetWhatIsOnAndLeaveOutPassesThatAreOff) {
  Config config = job();
  config.engine.disabled_passes = {"fuse", "order_nodes"};
  const std::vector<Switch> switches = {{"fuse", "", "", ""},
                                        {"prepack_operands", "", "", ""},
                                        {"x", "engine.precision", "bf16", "fp32"}};
  EXPECT_THAT(arm_settings({"", {true, false, true}}, switches, config),
              ElementsAre("engine.precision=bf16",
                          "engine.disabled_passes=[order_nodes, prepack_operands]"));
}

/// Programs that differ where these switches are on; "refuser" goes with nothing else.
ArmPlan plan_by_names(const Arm& arm, const std::vector<Switch>& switches) {
  ArmPlan plan{.planned_bytes = 100, .unit = "tokens"};
  std::string on;
  for (size_t i = 0; i < switches.size(); ++i)
    if (arm.on[i] && switches[i].name != "idle") on += switches[i].name + ' ';
  if (on.find("refuser") != on.npos && on != "refuser ") plan.refused = "not with others";
  // Without "first", "second" does nothing.
  if (on == "second ") on = "";
  plan.fingerprint = on;
  return plan;
}

TEST(ArmSearch, KeepsWhatChangesAProgramAndTellsWhatDoesNotGoTogether) {
  AblationPlan plan;
  find_arms(plan,
            {{"first", "", "", ""},
             {"second", "", "", ""},
             {"idle", "", "", ""},
             {"refuser", "", "", ""}},
            plan_by_names);
  EXPECT_THAT(names(plan.switches), ElementsAre("first", "second", "refuser"));
  EXPECT_THAT(plan.unused, ElementsAre("idle"));
  EXPECT_THAT(plan.alone, ElementsAre("refuser: not with others"));
  for (const PlannedArm& arm : plan.arms) {
    if (arm.arm.name == "+second") {
      EXPECT_EQ(arm.same_as, 0);
    }
    if (arm.arm.name == "as configured") {
      EXPECT_EQ(arm.dropped, "not with others");
    }
    if (arm.arm.name == "+refuser") {
      EXPECT_TRUE(arm.is_measured());
    }
  }
  AblationPlan none;
  EXPECT_THROW(find_arms(none, {{"idle", "", "", ""}}, plan_by_names), UsageError);
}

AblationPlan plan_of(size_t arms) {
  AblationPlan plan;
  plan.identity = "x";
  plan.seeds = 2;
  for (size_t i = 0; i < arms; ++i) {
    PlannedArm arm;
    arm.arm.name = "arm" + std::to_string(i);
    arm.plan.planned_bytes = 90;
    arm.plan.process_bytes = 10;
    plan.arms.push_back(arm);
  }
  return plan;
}

TEST(Budget, GroupsFitInMemoryAndHaveTheBaseInEach) {
  AblationPlan plan = plan_of(6);
  plan.arms[3].plan.planned_bytes = 1000;
  plan.arms[4].dropped = "refused";
  EXPECT_THAT(group_arms(plan.arms, 300), ElementsAre(ElementsAre(0, 0, 1), ElementsAre(0, 2),
                                                      ElementsAre(3), ElementsAre(0, 5)));
  EXPECT_THAT(group_arms(plan.arms, 10000), ElementsAre(ElementsAre(0, 0, 1, 2, 3, 5)));
}

TEST(Budget, StepsFillTheTimeAndArmsAreDroppedFromTheEnd) {
  const std::vector<ArmCost> costs(4, {.start = 1, .step = 0.01, .finish = 0.1});
  AblationBudget budget{.seconds = 100, .most_steps = 100'000, .memory_bytes = 1'000'000};
  AblationPlan plan = plan_of(4);
  spend(plan, costs, budget);
  // Five runs a seed, one of them the control: 7.5 s of starts and evaluations, 0.05 s a step.
  EXPECT_EQ(plan.steps, 848);
  EXPECT_EQ(plan.evaluation_interval, 212);
  EXPECT_NEAR(plan.estimated_seconds, 2 * (7.5 + 848 * 0.05), 1e-9);

  AblationPlan tight = plan_of(4);
  budget.seconds = 24;
  spend(tight, costs, budget);
  EXPECT_TRUE(tight.arms[2].is_measured());
  EXPECT_THAT(tight.arms[3].dropped, HasSubstr("no time"));
  EXPECT_EQ(tight.steps, 148);

  // Seeds that nobody asked for: of runs of twelve turns, six if there is time; more where the job has no more steps.
  AblationPlan open = plan_of(4);
  open.seeds = 0;
  budget.seconds = 100;
  spend(open, costs, budget);
  EXPECT_EQ(open.seeds, 4);
  EXPECT_LE(open.estimated_seconds, 100);
  EXPECT_GT(open.estimated_seconds, 95);
  AblationPlan brief = plan_of(4);
  brief.seeds = 0;
  budget.most_steps = 30;
  spend(brief, costs, budget);
  EXPECT_EQ(brief.seeds, 11);
  EXPECT_EQ(brief.steps, 28);
  AblationPlan scant = plan_of(4);
  scant.seeds = 0;
  budget.seconds = 24;
  spend(scant, costs, budget);
  EXPECT_EQ(scant.seeds, 2);
  budget.most_steps = 100'000;

  AblationPlan hopeless = plan_of(4);
  budget.seconds = 5;
  EXPECT_THROW(spend(hopeless, costs, budget), UsageError);
}

TEST(Kept, PlansAndRunsAreReadAsTheyWereWrittenAndDamageIsSeen) {
  const testing::ScratchFolder folder;
  AblationPlan plan = plan_of(3);
  plan.switches = {{"a", "", "", "not run"}};
  for (PlannedArm& arm : plan.arms) arm.arm.on = {true};
  plan.arms[2].same_as = 1;
  plan.groups = {{0, 0, 1}};
  plan.cut_seeds = 3;
  const std::string path = folder / "plan.json";
  ASSERT_TRUE(write_ablation_plan(path, plan).ok());
  EXPECT_EQ(read_ablation_plan(path).value(), plan);
  std::string text = read_file(path).value();
  text[text.find("arm1")] = 'A';
  EXPECT_THAT(parse_ablation_plan(text, "plan.json").error(), HasSubstr("damaged"));
  // Sealed, and yet nothing that could have been written.
  plan.steps = 8;
  plan.groups = {{0, 0}};
  ASSERT_TRUE(write_ablation_plan(path, plan).ok());
  EXPECT_THAT(read_ablation_plan(path).error(), HasSubstr("not measured once"));

  MeasuredRun run;
  run.step_seconds = {0.5, 0.25, 0.25};
  run.turns = {0, 1};
  run.evaluations = {{.step = 2, .seconds = 1, .metrics = {{"loss", 1.5}}}};
  run.seconds_to_first_step = std::nan("");
  const std::string file = folder / "run.json";
  ASSERT_TRUE(write_measured_run(file, run).ok());
  const MeasuredRun back = read_measured_run(file).value();
  EXPECT_EQ(back.step_seconds, run.step_seconds);
  EXPECT_EQ(back.turns, run.turns);
  EXPECT_EQ(back.evaluations[0].metric("loss"), 1.5);
  EXPECT_TRUE(std::isnan(back.seconds_to_first_step));
  run.turns = {0, 7};
  ASSERT_TRUE(write_measured_run(file, run).ok());
  EXPECT_THAT(read_measured_run(file).error(), HasSubstr("a step that there is not"));
}

TEST(Turns, AreComparedStepByStepWithoutTheColdFirstOnes) {
  // Turns of 1, 2 and 4 steps; the second of those counts none, the last three of the last.
  const std::vector<int64_t> turns = {0, 1, 3, 7};
  const std::vector<double> a = {9, 9, 9, 9, 1, 2, 4, 1, 1};
  const std::vector<double> b = {1, 1, 1, 1, 2, 4, 8, 4, 4};
  const std::vector<double> ratios = log_time_ratios(a, turns, b);
  ASSERT_EQ(ratios.size(), 2U);
  EXPECT_NEAR(ratios[0], std::log(2), 1e-12);
  EXPECT_NEAR(ratios[1], std::log(4), 1e-12);
  EXPECT_THAT(turn_medians(a, turns), ElementsAre(2, 1));
}

/// Arms whose log times differ by `effects`, over seeds that each have a mood, and processes with a deviation of `noise`.
SeedTable synthetic(const std::vector<double>& effects, int seeds, double noise,
                    PhiloxStream& draws) {
  SeedTable table(effects.size());
  for (int seed = 0; seed < seeds; ++seed) {
    const double mood = 0.1 * draws.normal();
    for (size_t arm = 0; arm < effects.size(); ++arm)
      table[arm].push_back(effects[arm] + mood + noise * draws.normal());
  }
  return table;
}

Effect effect_of(const SeedTable& table, size_t arm, int tests) {
  std::vector<double> differences;
  for (size_t seed = 0; seed < table[0].size(); ++seed)
    differences.push_back(table[arm][seed] - table[0][seed]);
  return effect(differences, error_variance({&table, 1}), tests);
}

TEST(Effects, KnowTheSpreadOfProcessesAndNotThatOfSeeds) {
  // Residuals of a 2 by 2 table with rows (0, 1) and (3, 2): +-0.5 each, so 1.0 over one degree of freedom.
  const SeedTable table = {{0, 1}, {3, 2}};
  const ErrorVariance error = error_variance({&table, 1});
  EXPECT_EQ(error.freedom, 1);
  EXPECT_NEAR(error.variance, 1.0, 1e-12);
  const Effect found = effect(std::vector<double>{3, 1}, error, 1);
  EXPECT_NEAR(found.difference, 2, 1e-12);
  // Paired t of 3 and 1: mean 2, deviation of the mean 1, one degree: p = 1 - 2 atan(2) / pi.
  EXPECT_NEAR(found.p, 1 - 2 * std::atan(2.0) / M_PI, 1e-12);
  EXPECT_NEAR(found.high - found.low, 2 * 12.7062047, 1e-5);
}

TEST(Effects, OfTwoPercentAreFoundAndThoseOfNothingAreNot) {
  PhiloxStream draws(7);
  int found = 0;
  int alarms = 0;
  constexpr int kTables = 500;
  for (int i = 0; i < kTables; ++i) {
    // The base, a control and an arm, four seeds, processes that differ by 0.3 %.
    const SeedTable table = synthetic({0, 0, 0.02}, 4, 0.003, draws);
    found += effect_of(table, 2, 1).p < 0.01 ? 1 : 0;
    alarms += effect_of(table, 1, 1).p < 0.01 ? 1 : 0;
  }
  EXPECT_GE(found, kTables * 19 / 20);
  EXPECT_LE(alarms, kTables / 50);
}

TEST(Effects, OfTheOrderOfStartsAreNeitherAnArmsNorSpread) {
  PhiloxStream draws(9);
  int found = 0;
  int alarms = 0;
  constexpr int kTables = 500;
  for (int i = 0; i < kTables; ++i) {
    // Five seeds; the first that is started is 2 % slower: the base with even seeds, the arm with odd ones.
    SeedTable table = synthetic({0, 0, 0.02}, 5, 0.003, draws);
    for (size_t seed = 0; seed < 5; ++seed) table[seed % 2 == 0 ? 0 : 2][seed] += 0.02;
    const Effect arm = effect_of(table, 2, 1);
    EXPECT_NEAR(arm.difference, 0.02, 0.015);
    found += arm.p < 0.01 ? 1 : 0;
    // Of the arm's own place nothing is left.
    for (double& value : table[2]) value -= 0.02;
    alarms += effect_of(table, 2, 1).p < 0.01 ? 1 : 0;
  }
  EXPECT_GE(found, kTables * 19 / 20);
  EXPECT_LE(alarms, kTables / 50);
}

TEST(Effects, OfAFewUnluckyProcessesAreClipped) {
  PhiloxStream draws(11);
  int found = 0;
  int found_as_they_are = 0;
  int alarms = 0;
  constexpr int kTables = 400;
  for (int i = 0; i < kTables; ++i) {
    // Of processes that differ by 1 % one of twenty-five is 8 % slower.
    SeedTable table = synthetic({0, 0, 0.02}, 28, 0.01, draws);
    for (std::vector<double>& row : table)
      for (double& value : row) value += draws.below(25) == 0 ? 0.08 : 0;
    found_as_they_are += effect_of(table, 2, 1).p < 0.01 ? 1 : 0;
    const ClippedTables clipped = clip_outliers({&table, 1});
    ErrorVariance error = error_variance(clipped.tables);
    error.variance *= clipped.variance_factor;
    const auto p = [&](size_t arm) {
      std::vector<double> differences;
      for (size_t seed = 0; seed < table[0].size(); ++seed)
        differences.push_back(clipped.tables[0][arm][seed] - clipped.tables[0][0][seed]);
      return effect(differences, error, 1).p;
    };
    found += p(2) < 0.01 ? 1 : 0;
    alarms += p(1) < 0.01 ? 1 : 0;
  }
  EXPECT_GE(found, kTables * 19 / 20);
  EXPECT_LT(found_as_they_are, found);
  EXPECT_LE(alarms, kTables / 50);
}

TEST(Effects, AreNotClippedWhereSeedsAreFewOrNothingIsFar) {
  PhiloxStream draws(3);
  SeedTable few = synthetic({0, 0.1}, 9, 0.01, draws);
  few[1][4] += 1;
  EXPECT_EQ(clip_outliers({&few, 1}).tables[0], few);
  EXPECT_EQ(clip_outliers({&few, 1}).variance_factor, 1);
  // Residuals of the same size, one sign or the other; and an arm that lacks a figure.
  SeedTable even(3, std::vector<double>(12));
  for (size_t seed = 0; seed < 12; ++seed)
    for (size_t arm = 0; arm < 2; ++arm) even[arm][seed] = (seed / 2 + arm) % 2 == 0 ? 0.01 : -0.01;
  even[2][5] = std::nan("");
  const ClippedTables same = clip_outliers({&even, 1});
  EXPECT_EQ(same.variance_factor, 1);
  for (size_t arm = 0; arm < 2; ++arm)
    for (size_t seed = 0; seed < 12; ++seed)
      EXPECT_NEAR(same.tables[0][arm][seed], even[arm][seed], 1e-15);
  const SeedTable equal(2, std::vector<double>(12, 1.0));
  const ClippedTables of_equal = clip_outliers({&equal, 1});
  for (const std::vector<double>& row : of_equal.tables[0])
    for (const double value : row) EXPECT_NEAR(value, 1, 1e-12);
}

TEST(Effects, NeedTwoSeeds) {
  const SeedTable table = {{0}, {1}};
  const Effect found = effect(std::vector<double>{1}, error_variance({&table, 1}), 1);
  EXPECT_EQ(found.difference, 1);
  EXPECT_TRUE(std::isnan(found.p));
  EXPECT_FALSE(found.is_shown());
}

TEST(Tables, AreEscapedForWhereTheyAreShown) {
  const ReportTable table{.title = "T", .header = {"arm", "n"}, .rows = {{"a|<b>\x1b", "1"}}};
  EXPECT_EQ(table_text(table), "T\narm        n\na|<b>\\x1b  1\n");
  EXPECT_THAT(table_markdown(table), HasSubstr("| a\\|\\<b>\\\\x1b | 1 |"));
  EXPECT_THAT(table_html(table), HasSubstr("<td>a|&lt;b&gt;"));
}

TEST(AblationReport, TellsUpToWhichStepAnArmThatStartsSoonerIsAhead) {
  AblationReport report;
  for (const char* const name : {"base", "+engine.compile=fast"}) {
    ArmReport& arm = report.arms.emplace_back();
    arm.name = name;
    arm.seeds = 2;
    arm.step_seconds = 1;
  }
  report.arms[1].ahead_until_step = 120;
  EXPECT_THAT(ablation_markdown(report), HasSubstr("| until 120 |"));
  EXPECT_EQ(to_json(report)["arms"][1]["ahead_until_step"], 120);
  report.arms[1].ahead_until_step = ArmReport::kUnknown;
  EXPECT_THAT(ablation_markdown(report), ::testing::Not(HasSubstr("until 120")));
  report.arms[1].run_kwh = 0.75;
  report.arms[1].saved_kwh = 0.25;
  EXPECT_THAT(ablation_markdown(report), HasSubstr("| 0.75 | 0.25 |"));
  EXPECT_EQ(to_json(report)["arms"][1]["saved_kwh"], 0.25);
}

TEST(Evaluations, AreOfAsManyBatchesInAllArms) {
  AblationRequest request;
  AblationPlan plan;
  plan.switches = {{.name = "fuse", .key = "", .value = "", .off = ""}};
  EXPECT_EQ(evaluation_batches(request, plan), 16);
  request.settings.train.eval_batches = 10;
  EXPECT_EQ(evaluation_batches(request, plan), 10);
  request.settings.train.eval_batches = 100;
  EXPECT_EQ(evaluation_batches(request, plan), 16);
  request.eval_batches = 0;
  EXPECT_EQ(evaluation_batches(request, plan), 100);
  request.eval_batches = 4;
  EXPECT_EQ(evaluation_batches(request, plan), 4);
  plan.switches.push_back(
      {.name = "optim.name=muon", .key = "optim.name", .value = "muon", .off = "adamw"});
  EXPECT_EQ(evaluation_batches(request, plan), 4);
  // As many batches of another size would be other rows.
  plan.switches.push_back(
      {.name = "train.batch_size=8", .key = "train.batch_size", .value = "8", .off = "4"});
  EXPECT_EQ(evaluation_batches(request, plan), 100);
  plan.switches.back() = {
      .name = "model.context=8", .key = "model.context", .value = "8", .off = "16"};
  EXPECT_EQ(evaluation_batches(request, plan), 100);
}

TEST(AblationReport, HasARowOfAnArmThatFailed) {
  AblationReport report;
  for (const char* const name : {"base", "+fuse"}) report.arms.emplace_back().name = name;
  report.arms[0].step_seconds = 1;
  report.arms[1].reason = "exit code 5: no memory";
  EXPECT_THAT(ablation_markdown(report), HasSubstr("| +fuse | - | - |  |  |  |  | not measured |"));
  EXPECT_THAT(ablation_text(report), HasSubstr("Not measured: +fuse: exit code 5: no memory"));
  EXPECT_EQ(to_json(report)["arms"][1]["reason"], "exit code 5: no memory");
}

}  // namespace
}  // namespace fullbore
