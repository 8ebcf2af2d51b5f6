#include "fullbore/train/memory_fit.h"

#include <gtest/gtest.h>

#include <string>

#include "fullbore/base/error.h"
#include "fullbore/base/processor.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/process.h"

namespace fullbore {
namespace {

constexpr int64_t kMiB = 1 << 20;

/// A run whose bytes are known: State and its copy, and activations of each sequence of a part.
struct MadeUpRuns {
  int64_t state = 100 * kMiB;
  int64_t sequence = 10 * kMiB;
  int plans = 0;

  PlannedRun operator()(const Config& config) {
    ++plans;
    const int64_t rows = config.train.batch_size / config.engine.accumulate;
    const bool again = config.engine.recompute != "off";
    const bool low = config.engine.precision == "bf16";
    PlannedRun run;
    run.rows = config.train.batch_size;
    run.bytes = state * (config.train.background_saves ? 2 : 1) +
                rows * sequence / (again ? 2 : 1) / (low ? 2 : 1);
    run.seconds = static_cast<double>(config.train.batch_size) * (again ? 1.3 : 1.0) *
                  (low ? 0.6 : 1.0) * (config.engine.accumulate > 1 ? 1.05 : 1.0);
    return run;
  }
};

Config config_of(const std::string& budget, int64_t batch) {
  Config config;
  config.engine.memory_budget = budget;
  config.train.batch_size = batch;
  return config;
}

FittedConfig fit(const Config& config, MadeUpRuns& runs) {
  return fit_memory(config, {[&](const Config& each) { return runs(each); }});
}

std::string refusal(const Config& config) {
  MadeUpRuns runs;
  try {
    fit(config, runs);
  } catch (const MemoryError& error) {
    EXPECT_EQ(error.code(), ExitCode::kMemory);
    return error.what();
  }
  return "fits";
}

TEST(MemoryBudget, IsBytesOrAShare) {
  Config config;
  const std::pair<const char*, int64_t> cases[] = {
      {"6GiB", int64_t{6} << 30},   {"1500MB", 1'500'000'000},
      {"1.5GiB", int64_t{3} << 29}, {"4096", 4096},
      {"512KiB", 512 << 10},        {"10B", 10}};
  for (const auto& [text, bytes] : cases) {
    config.engine.memory_budget = text;
    EXPECT_EQ(memory_budget_bytes(config), bytes) << text;
  }
  config.engine.memory_budget = "0.5";
  EXPECT_NEAR(static_cast<double>(memory_budget_bytes(config)),
              0.5 * static_cast<double>(memory_limit_bytes()), 1);
  config.engine.memory_budget = "";
  EXPECT_GT(memory_budget_bytes(config), 0);
  EXPECT_LT(memory_budget_bytes(config), memory_limit_bytes());
  for (const char* wrong : {"-1", "0", "6Gib", "GiB", "6 GiB", "nan", "inf", "1e300", "6GiBx"}) {
    config.engine.memory_budget = wrong;
    EXPECT_THROW(memory_budget_bytes(config), UsageError) << wrong;
  }
}

// The process counts: what it takes is not left to the plan.
TEST(FitMemory, HoldsPlanAndProcessAgainstTheBudget) {
  ProcessMemory process;
  process.program_bytes = 60 * kMiB;
  process.compile_bytes = 20 * kMiB;
  const auto planned = [&](const Config& config) {
    return PlannedRun{config.train.batch_size * kMiB, 1, config.train.batch_size, process};
  };
  EXPECT_EQ(fit_memory(config_of("100MiB", 0), {planned}).config.train.batch_size, 20);
  EXPECT_EQ(fit_memory(config_of("100MiB", 20), {planned}).config.train.batch_size, 20);
  EXPECT_THROW(fit_memory(config_of("100MiB", 21), {planned}), MemoryError);
  try {
    fit_memory(config_of("79MiB", 1), {planned});
    ADD_FAILURE() << "the process alone takes 80 MiB";
  } catch (const MemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(
        text.find("would take 81.0 MiB (1.00 MiB planned, 80.0 MiB for the process), 79.0 MiB "
                  "are allowed"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("The process alone takes more than that."), std::string::npos) << text;
  }
  EXPECT_EQ(plan_memory_bytes(config_of("100MiB", 1), process), 20 * kMiB / 64 * 63);
}

TEST(ProcessMemory, GrowsWithAllThatTheProcessKeeps) {
  const ProcessShape shape{.nodes = 100, .workers = 2, .processors = 2, .loaders = 2};
  const int64_t least = process_memory(shape).bytes();
  const auto with = [&](auto change) {
    ProcessShape larger = shape;
    change(larger);
    return process_memory(larger).bytes() - least;
  };
  EXPECT_GT(with([](ProcessShape& s) { s.nodes += 100; }), 0);
  EXPECT_GT(with([](ProcessShape& s) { ++s.workers; }), 0);
  EXPECT_GT(with([](ProcessShape& s) { ++s.processors; }), 0);
  EXPECT_GT(with([](ProcessShape& s) { ++s.loaders; }), 0);
  EXPECT_GT(with([](ProcessShape& s) { s.saves_in_background = true; }), 0);
  EXPECT_EQ(with([](ProcessShape& s) { s.batch_bytes += 12345; }), 12345);
  EXPECT_EQ(with([](ProcessShape& s) { s.data_bytes = 4 * kMiB; }), 0) << "of every run's own";
  EXPECT_GE(with([](ProcessShape& s) { s.data_bytes = 12 * kMiB; }), 8 * kMiB);
}

TEST(FitMemory, LeavesAloneWhatFits) {
  MadeUpRuns runs;
  const Config config = config_of("1GiB", 16);
  const FittedConfig fitted = fit(config, runs);
  EXPECT_EQ(fitted.config, config);
  EXPECT_TRUE(fitted.decisions.empty());
  EXPECT_EQ(runs.plans, 1);
}

TEST(FitMemory, SolvesTheBatchInFewPlans) {
  for (const int64_t parts : {1, 3}) {
    MadeUpRuns runs;
    Config config = config_of("1000MiB", 0);
    config.engine.accumulate = parts;
    const FittedConfig fitted = fit(config, runs);
    EXPECT_EQ(fitted.config.train.batch_size, 80 * parts);
    EXPECT_LE(fitted.run.bytes, 1000 * kMiB);
    EXPECT_LE(runs.plans, 8);
    ASSERT_EQ(fitted.decisions.size(), 1u);
  }
}

// Where bytes jump, the guess from two plans is far off.
TEST(FitMemory, SolvesTheBatchWhereBytesAreNoLine) {
  for (const int64_t kink : {1, 2, 5, 40, 41, 1000}) {
    const auto planned = [&](const Config& config) {
      const int64_t batch = config.train.batch_size;
      return PlannedRun{batch * kMiB + (batch > kink ? 60 * kMiB : 0), 1, batch};
    };
    const FittedConfig fitted = fit_memory(config_of("100MiB", 0), {planned});
    const int64_t expected = kink >= 100 ? 100 : std::max<int64_t>(40, kink);
    EXPECT_EQ(fitted.config.train.batch_size, expected) << kink;
  }
}

// 81 sequences would fit, and the noise scale compares two halves of a batch.
TEST(FitMemory, RecomputesWhereNotEvenTheSmallestBatchFits) {
  Config config = config_of("206MiB", 0);
  MadeUpRuns runs;
  EXPECT_NE(refusal(config), "fits");
  config.engine.degrade = {"accumulate"};
  EXPECT_NE(refusal(config), "fits");
  config.engine.degrade = {"accumulate", "recompute"};
  FittedConfig fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.engine.recompute, "auto");
  EXPECT_EQ(fitted.config.train.batch_size, 1);
  EXPECT_EQ(fitted.decisions.size(), 2U);
  config.engine.memory_budget = "260MiB";  // room for batches as they are: nothing is degraded
  fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.engine.recompute, "off");
  EXPECT_EQ(fitted.config.train.batch_size, 6);
  config.engine.memory_budget = "204MiB";
  EXPECT_NE(refusal(config), "fits");
}

TEST(FitMemory, SolvesAnEvenBatchForTheNoiseScale) {
  MadeUpRuns runs;
  Config config = config_of("1010MiB", 0);
  EXPECT_EQ(fit(config, runs).config.train.batch_size, 81);
  config.optim.noise_scale = true;
  const FittedConfig fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.train.batch_size, 80);
  EXPECT_NE(fitted.decisions.at(0).find("the largest multiple of 2 within"), std::string::npos);
  config.engine.memory_budget = "215MiB";  // room for one sequence
  EXPECT_NE(refusal(config).find("would take 220.0 MiB"), std::string::npos);
}

TEST(FitMemory, OffersBatchesThatDivideAsTheyMust) {
  Config config = config_of("211MiB", 10);  // of 2.5 MiB each, four fit
  config.engine.precision = "bf16";
  config.engine.recompute = "full";
  config.optim.noise_scale = true;
  EXPECT_NE(refusal(config).find("train.batch_size=4 "), std::string::npos) << refusal(config);
  config.optim.noise_scale = false;
  config.train.batch_size = 27;
  config.engine.accumulate = 3;  // of each part, four
  EXPECT_NE(refusal(config).find("train.batch_size=12 "), std::string::npos) << refusal(config);
}

// Batches of documents of like length have other numbers of rows than train.batch_size says.
TEST(FitMemory, PartsDivideTheRowsThatBatchesHave) {
  const auto planned = [](const Config& config) {
    return PlannedRun{45 * kMiB / config.engine.accumulate, 1, 45};
  };
  Config config = config_of("20MiB", 16);
  config.engine.accumulate = 0;
  EXPECT_EQ(fit_memory(config, {planned}).config.engine.accumulate, 3);
}

TEST(FitMemory, AccumulationLeavesWholeMicrobatches) {
  const auto planned = [](const Config& config) {
    return PlannedRun{45 * kMiB / config.engine.accumulate, 1, 60};
  };
  Config config = config_of("16MiB", 60);
  config.engine.accumulate = 0;
  EXPECT_EQ(fit_memory(config, {planned}).config.engine.accumulate, 3);
  config.engine.parallel_microbatches = 4;  // 60 rows in 3 parts of 4 microbatches
  EXPECT_EQ(fit_memory(config, {planned}).config.engine.accumulate, 3);
  config.engine.parallel_microbatches = 6;  // not in 3 or 4 parts of 6
  EXPECT_EQ(fit_memory(config, {planned}).config.engine.accumulate, 5);
}

TEST(FitMemory, SolvesTheNumberOfParts) {
  MadeUpRuns runs;
  Config config = config_of("300MiB", 24);  // 10 sequences fit
  config.engine.accumulate = 0;
  EXPECT_EQ(fit(config, runs).config.engine.accumulate, 3);
  config.train.batch_size = 8;
  EXPECT_EQ(fit(config, runs).config.engine.accumulate, 1);
}

TEST(FitMemory, DegradesInTheOrderGiven) {
  MadeUpRuns runs;
  Config config = config_of("300MiB", 18);
  config.engine.degrade = {"recompute", "accumulate"};
  FittedConfig fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.engine.recompute, "auto");
  EXPECT_EQ(fitted.config.engine.accumulate, 1);
  config.engine.degrade = {"accumulate", "recompute"};
  fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.engine.recompute, "off");
  EXPECT_EQ(fitted.config.engine.accumulate, 2);
  config.train.batch_size = 40;  // 20 fit with recomputation: both are needed
  config.engine.degrade = {"recompute", "accumulate"};
  fitted = fit(config, runs);
  EXPECT_EQ(fitted.config.engine.recompute, "auto");
  EXPECT_EQ(fitted.config.engine.accumulate, 2);
  EXPECT_EQ(fitted.decisions.size(), 2u);
}

/// Runs whose microbatches are open: each has gradients of its own, and activations of those that go side by side are
/// there at once, on this machine two.
struct ParallelRuns {
  int64_t gradients = 10 * kMiB;
  int64_t sequence = 10 * kMiB;
  std::vector<int64_t> counts = {2, 4, 1};
  int64_t here_side_by_side = 2;

  RunPlanning planning() const {
    const auto run = [*this](const Config& config, int64_t side_by_side) {
      const int64_t parallel = config.engine.parallel_microbatches;
      EXPECT_GT(parallel, 0);
      const int64_t rows = config.train.batch_size / config.engine.accumulate / parallel;
      return PlannedRun{parallel * gradients + std::min(parallel, side_by_side) * rows * sequence,
                        1, config.train.batch_size};
    };
    return {.here = [=, side = here_side_by_side](const Config& c) { return run(c, side); },
            .least = [=](const Config& c) { return run(c, 1); },
            .parallel_counts =
                [*this](const Config& config) {
                  std::vector<int64_t> cut;
                  for (const int64_t count : counts)
                    if (config.train.batch_size % (count * config.engine.accumulate) == 0)
                      cut.push_back(count);
                  return cut;
                }};
  }
};

// Nor does it become one by a setting that nobody gave: parts would be another step.
TEST(FitMemory, LeavesABatchWholeWhoseStatisticsAreNormalizedBy) {
  ParallelRuns runs;
  runs.counts = {1};
  RunPlanning planning = runs.planning();
  planning.needs_whole_batch = [](const Config&) { return true; };
  const FittedConfig fitted = fit_memory(config_of("1GiB", 16), planning);
  EXPECT_EQ(fitted.config.engine.parallel_microbatches, 1);
  ASSERT_EQ(fitted.decisions.size(), 1U);
  EXPECT_NE(fitted.decisions[0].find("statistics of the whole batch"), std::string::npos);

  Config narrow = config_of("100MiB", 16);  // two parts of 8 sequences would fit
  narrow.engine.degrade = {"accumulate"};
  const auto refused = [&](const Config& config) {
    try {
      fit_memory(config, planning);
    } catch (const MemoryError& error) {
      return std::string(error.what()).find("engine.accumulate=") == std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused(narrow));
  narrow.engine.accumulate = 0;
  EXPECT_TRUE(refused(narrow));
  planning.needs_whole_batch = {};
  EXPECT_EQ(fit_memory(narrow, planning).config.engine.accumulate, 2);

  planning.needs_whole_batch = [](const Config&) { return true; };
  narrow.engine.accumulate = 2;
  const FittedConfig asked = fit_memory(narrow, planning);
  EXPECT_EQ(asked.config.engine.accumulate, 2);
  ASSERT_EQ(asked.decisions.size(), 1U);
  EXPECT_NE(asked.decisions[0].find("statistics of each microbatch"), std::string::npos);
}

TEST(FitMemory, TakesTheBestCountThatFits) {
  const auto microbatches = [](const char* budget) {
    const FittedConfig fitted = fit_memory(config_of(budget, 16), ParallelRuns().planning());
    EXPECT_EQ(fitted.decisions.empty(), fitted.config.engine.parallel_microbatches == 2) << budget;
    EXPECT_EQ(fitted.config.engine.parallel_microbatches, fitted.run.parallel);
    return fitted.config.engine.parallel_microbatches;
  };
  EXPECT_EQ(microbatches("180MiB"), 2);
  EXPECT_EQ(microbatches("1GiB"), 2);
  // 2 go one after another in 100 MiB elsewhere: the job is not to be another here.
  EXPECT_THROW(microbatches("179MiB"), MemoryError);
  ParallelRuns alone;
  alone.here_side_by_side = 1;
  const auto lone = [&](const char* budget) {
    return fit_memory(config_of(budget, 16), alone.planning()).config.engine.parallel_microbatches;
  };
  EXPECT_EQ(lone("179MiB"), 2);
  EXPECT_EQ(lone("100MiB"), 2);
  EXPECT_EQ(lone("99MiB"), 4) << "of 4 sequences each: 80 MiB";
  EXPECT_THROW(lone("79MiB"), MemoryError);
  alone.gradients = 100 * kMiB;
  EXPECT_EQ(lone("280MiB"), 2);
  EXPECT_EQ(lone("270MiB"), 1) << "whole 260 MiB, in two 280, in four 440";
}

// Whoever has more threads, or less memory, gets the same bits or a refusal.
TEST(FitMemory, CountsAreTheJobsOwn) {
  const auto microbatches = [](int64_t side_by_side, int64_t budget) -> int64_t {
    ParallelRuns runs;
    runs.here_side_by_side = side_by_side;
    try {
      return fit_memory(config_of(std::to_string(budget), 16), runs.planning())
          .config.engine.parallel_microbatches;
    } catch (const MemoryError&) {
      return 0;
    }
  };
  int differing = 0;
  for (int64_t budget = 60 * kMiB; budget < 240 * kMiB; budget += kMiB) {
    const int64_t alone = microbatches(1, budget);
    for (const int64_t side_by_side : {2, 4}) {
      const int64_t here = microbatches(side_by_side, budget);
      EXPECT_TRUE(here == alone || here == 0) << budget / kMiB << ": " << here << ", " << alone;
      differing += here != alone;
    }
  }
  EXPECT_GT(differing, 0) << "no budget was between";
  // A share of the machine's memory, or all of it, is nothing of the job's.
  ParallelRuns large;
  large.sequence = memory_limit_bytes() / 15;
  for (const char* share : {"", "0.9"}) {
    try {
      fit_memory(config_of(share, 16), large.planning());
      ADD_FAILURE() << "it does not fit in two, and was made in others";
    } catch (const MemoryError& error) {
      EXPECT_NE(std::string(error.what()).find("\n  engine.parallel_microbatches=4 "),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(FitMemory, SolvesTheBatchWithItsMicrobatches) {
  const auto batch = [](const char* budget) {
    const FittedConfig fitted = fit_memory(config_of(budget, 0), ParallelRuns().planning());
    EXPECT_GT(fitted.config.engine.parallel_microbatches, 0);
    EXPECT_EQ(fitted.config.train.batch_size % fitted.config.engine.parallel_microbatches, 0);
    return fitted.config.train.batch_size;
  };
  EXPECT_EQ(batch("120MiB"), 8) << "a multiple of four: 2 x 4 sequences, and gradients";
  EXPECT_EQ(batch("59MiB"), 2) << "four would be 60";
  EXPECT_EQ(batch("30MiB"), 1);
}

TEST(FitMemory, TellsTheNearestBatchAndTheBudgetThatWouldDo) {
  Config config = config_of("300MiB", 30);  // 10 sequences fit, beside 200
  config.engine.recompute = "full";         // of 5 MiB each: 20
  config.engine.precision = "bf16";         // of 2.5: 40
  config.engine.memory_budget = "260MiB";   // 24
  config.train.background_saves = true;
  config.optim.noise_scale = true;  // in one part
  const std::string text = refusal(config);
  EXPECT_NE(text.find("train.batch_size=24 "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  engine.memory_budget=280MiB would do for all as it is"),
            std::string::npos)
      << text;
  config.engine.memory_budget = "280MiB";
  EXPECT_EQ(refusal(config), "fits");
}

TEST(FitMemory, RefusesWithTheCheapestRemedies) {
  const std::string text = refusal(config_of("300MiB", 18));
  EXPECT_NE(
      text.find(
          "would take 380.0 MiB (380.0 MiB planned, 0 B for the process), 300.0 MiB are allowed"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("engine.precision=bf16"), std::string::npos) << text;
  EXPECT_LT(text.find("train.background_saves=false"), text.find("train.batch_size=9")) << text;
  EXPECT_EQ(text.find("engine.recompute"), std::string::npos) << text;  // the fourth
}

/// With 200 MiB free of its own.
const RegisteredDevice kCard({.name = "card_of_200_mib",
                              .summary = "of this test",
                              .open = [](const std::string& name, int) -> std::shared_ptr<Device> {
                                throw UsageError(name + " is for its memory alone");
                              },
                              .own_memory_bytes = [](const std::string&) { return 200 * kMiB; }});

TEST(FitMemory, GoesByTheMemoryOfADeviceThatHasItsOwn) {
  Config config = config_of("", 4);
  config.engine.device = "card_of_200_mib:1";
  EXPECT_EQ(run_memory_bytes(config), 200 * kMiB);
  EXPECT_EQ(memory_budget_bytes(config), 180 * kMiB);
  config.engine.memory_budget = "0.5";
  const std::string text = refusal(config);
  EXPECT_NE(text.find("would take 240.0 MiB of card_of_200_mib:1's memory, 100.0 MiB are allowed"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("engine.memory_budget="), std::string::npos) << "240 of 200: " << text;
  config.engine.device = "cpu";
  EXPECT_EQ(run_memory_bytes(config), memory_limit_bytes());
}

TEST(FitMemory, OffersBf16AsFasterOnlyWhereItIs) {
  const auto offered = [] {
    const std::string text = refusal(config_of("300MiB", 18));
    const size_t line = text.find("engine.precision=bf16");
    return text.substr(line, text.find('\n', line) - line);
  };
  limit_processor("x86-64-v2", "test");
  EXPECT_NE(offered().find("+0 % time per sequence"), std::string::npos) << offered();
  limit_processor("auto", "test");
  const char* const expected = this_processor().avx512_bf16 ? "-40 %" : "+0 %";
  EXPECT_NE(offered().find(expected), std::string::npos) << offered();
}

// A lattice has no room for the flows of a batch in fewer parts, say.
TEST(FitMemory, OffersNothingThatTheModelRefuses) {
  MadeUpRuns runs;
  const auto refusing = [&](const Config& each) {
    if (each.engine.precision == "bf16" || each.engine.accumulate > 1 || each.train.batch_size < 18)
      throw UsageError("not with this model");
    return runs(each);
  };
  try {
    fit_memory(config_of("300MiB", 18), {refusing});
    FAIL();
  } catch (const MemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("train.background_saves=false"), std::string::npos) << text;
    EXPECT_EQ(text.find("engine.precision"), std::string::npos) << text;
    EXPECT_EQ(text.find("train.batch_size"), std::string::npos) << text;
  }
}

TEST(FitMemory, RefusesWhatNothingMakesFit) {
  EXPECT_NE(refusal(config_of("50MiB", 4)).find("No setting of the engine makes it fit"),
            std::string::npos);
  EXPECT_NE(refusal(config_of("50MiB", 0)).find("No setting"), std::string::npos);
}

}  // namespace
}  // namespace fullbore
