// Every rule fires where it should and keeps silent where it should not: facts are made up.
#include "fullbore/lab/diagnosis/advice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void put(RunFacts& facts, RunPhase phase, const std::string& what, double seconds,
         double roofline = RunFacts::kUnknown, double memory = 0) {
  for (Attribution* each : {&facts.measured, &facts.whole}) {
    each->rows.push_back({.phase = phase,
                          .what = what,
                          .seconds = seconds,
                          .roofline_seconds = roofline,
                          .memory_seconds = memory});
    each->wall_seconds += seconds;
  }
}

/// A run of 100 seconds about which there is nothing to say.
RunFacts healthy() {
  RunFacts facts;
  put(facts, RunPhase::start, "compile", 1);
  put(facts, RunPhase::data, "wait for the batch", 1);
  put(facts, RunPhase::step, "matmul", 75, 60);
  put(facts, RunPhase::step, "fused", 13, 8, 8);
  put(facts, RunPhase::step, kIdle, 5);
  put(facts, RunPhase::evaluation, "held-out batches", 4);
  put(facts, RunPhase::host, "lines, metrics, checks", 1);
  facts.steps = 2000;
  facts.processors = facts.threads = 2;
  facts.planned_bytes = 6e9;
  facts.memory_bytes = 8e9;
  facts.loader_seconds = 1;
  for (int64_t step = 10; step <= facts.steps; step += 10) {
    const double noise = 0.02 * std::sin(static_cast<double>(step));
    facts.loss.push_back({step, 1 + 3 * std::exp(-static_cast<double>(step) / 800) + noise});
  }
  for (int64_t step = 0; step <= facts.steps; step += 250)
    facts.validation_loss.push_back({step, 1.2 + 3 * std::exp(-static_cast<double>(step) / 800)});
  return facts;
}

std::vector<std::string> fired(const RunFacts& facts) {
  std::vector<std::string> rules;
  for (const Advice& each : advise(facts)) rules.push_back(each.rule);
  return rules;
}

/// The healthy run with something wrong.
RunFacts but(const std::function<void(RunFacts&)>& change) {
  RunFacts facts = healthy();
  change(facts);
  return facts;
}

Advice only(const RunFacts& facts, const std::string& rule) {
  for (const Advice& each : advise(facts))
    if (each.rule == rule) return each;
  ADD_FAILURE() << rule << " did not fire";
  return {};
}

TEST(Advice, OfAHealthyRunThereIsNone) { EXPECT_THAT(fired(healthy()), IsEmpty()); }

TEST(Advice, EveryRuleHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const auto rules : {compile_rules(), speed_rules(), learning_rules()})
    for (const AdviceRule& rule : rules) EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
  EXPECT_EQ(names.size(), 22U);
}

TEST(Advice, TheGuideHasEveryRule) {
  const std::string page =
      read_file(testing::source_folder() + "/docs/guide/diagnosing.md").take_or_throw();
  for (const auto rules : {compile_rules(), speed_rules(), learning_rules()})
    for (const AdviceRule& rule : rules)
      EXPECT_THAT(page, HasSubstr(fmt::format("\n| {} | {} |\n", rule.name, rule.about)));
}

TEST(Advice, InputBound) {
  const Advice found =
      only(but([](RunFacts& facts) { put(facts, RunPhase::data, "wait for the batch", 30); }),
           "input-bound");
  EXPECT_EQ(found.change, "data.workers=2");
  EXPECT_EQ(found.undo, "data.workers=1");
  EXPECT_NEAR(found.gain, 31.0 / 130, 1e-9);
}

// Batches that are made with the weights of the step are no input to wait for.
TEST(Advice, RolloutsAreNoInput) {
  const RunFacts facts =
      but([](RunFacts& run) { put(run, RunPhase::rollouts, "make the batch", 300); });
  EXPECT_THAT(fired(facts), Not(Contains("input-bound")));
  EXPECT_THAT(bottleneck(facts), HasSubstr("Rollouts"));
}

TEST(Advice, LoaderTakesTheStepsProcessors) {
  const auto loading = [](double seconds, int processors) {
    return but([&](RunFacts& facts) {
      facts.loader_seconds = seconds;
      facts.processors = processors;
    });
  };
  EXPECT_EQ(only(loading(60, 2), "loader-bound").change, "engine.threads=1");
  EXPECT_THAT(fired(loading(60, 4)), Not(Contains("loader-bound"))) << "there is room beside";
  EXPECT_THAT(fired(loading(5, 2)), Not(Contains("loader-bound")));
}

TEST(Advice, LaunchBound) {
  const Advice found =
      only(but([](RunFacts& facts) { put(facts, RunPhase::step, kIdle, 40); }), "launch-bound");
  EXPECT_EQ(found.change, "train.batch_size=24");
  EXPECT_EQ(found.undo, "train.batch_size=12");
}

TEST(Advice, AtTheLimit) {
  const auto reached = [](double share) {
    RunFacts facts;
    put(facts, RunPhase::step, "matmul", 100, 100 * share);
    return facts;
  };
  EXPECT_THAT(fired(reached(0.96)), Contains("at-the-limit"));
  EXPECT_THAT(fired(reached(0.94)), Not(Contains("at-the-limit")));
  // One kernel that is faster than memory does not make up for another that is slow.
  EXPECT_THAT(fired(but([](RunFacts& facts) { put(facts, RunPhase::step, "gather", 1, 90, 90); })),
              Not(Contains("at-the-limit")));
}

TEST(Advice, Bf16WhereItIsFaster) {
  const auto machine = [](bool native, double speed, const char* precision) {
    return but([&](RunFacts& facts) {
      facts.native_bf16 = native;
      facts.bf16_speed = speed;
      facts.config.engine.precision = precision;
    });
  };
  // Matmuls alone are bound by arithmetic, which must take 60 of their 75 seconds: half of those go.
  EXPECT_NEAR(only(machine(true, 2, "fp32"), "bf16").gain, 0.3, 1e-9);
  EXPECT_THAT(fired(machine(true, 2, "bf16")), Not(Contains("bf16")));
  EXPECT_THAT(fired(machine(false, 1, "fp32")), Not(Contains("bf16")));
}

TEST(Advice, LongAttention) {
  const auto attention = [](double seconds) {
    return but([&](RunFacts& facts) { put(facts, RunPhase::step, "attention", seconds, seconds); });
  };
  EXPECT_THAT(fired(attention(60)), Contains("attention"));
  EXPECT_THAT(fired(attention(30)), Not(Contains("attention")));
}

TEST(Advice, FreeMemory) {
  const auto planned = [](double bytes) {
    return but([&](RunFacts& facts) { facts.planned_bytes = bytes; });
  };
  EXPECT_THAT(only(planned(3e9), "memory-free").finding, HasSubstr("2.79 GiB of 7.45 GiB"));
  EXPECT_THAT(fired(planned(4.5e9)), Not(Contains("memory-free")));
  EXPECT_EQ(only(but([](RunFacts& facts) {
                   facts.planned_bytes = 3e9;
                   facts.config.engine.recompute = "full";
                 }),
                 "memory-free")
                .change,
            "engine.recompute=off");
}

TEST(Advice, SlowStart) {
  const auto start = [](double seconds, bool cache) {
    return but([&](RunFacts& facts) {
      put(facts, RunPhase::start, "trace", seconds);
      facts.config.engine.cache = cache;
    });
  };
  EXPECT_THAT(only(start(130, true), "slow-start").finding, HasSubstr("trace"));
  EXPECT_EQ(only(start(130, false), "slow-start").change, "engine.cache=true");
  EXPECT_THAT(fired(start(100, true)), Not(Contains("slow-start")));
}

TEST(Advice, EvaluationsSavesAndHost) {
  EXPECT_EQ(only(but([](RunFacts& facts) { put(facts, RunPhase::evaluation, "held out", 20); }),
                 "evaluations")
                .change,
            "train.eval_interval=500");
  const auto saving = [](bool background) {
    return but([&](RunFacts& facts) {
      put(facts, RunPhase::checkpoint, "save", 10);
      facts.config.train.background_saves = background;
    });
  };
  EXPECT_EQ(only(saving(true), "saves").change, "train.checkpoint_interval=500");
  EXPECT_EQ(only(saving(false), "saves").change, "train.background_saves=true");
  EXPECT_EQ(only(but([](RunFacts& facts) { put(facts, RunPhase::host, "more lines", 9); }), "host")
                .change,
            "log.interval=100");
}

TEST(Advice, SwitchesAtRest) {
  const Advice found =
      only(but([](RunFacts& facts) {
             facts.inactive.push_back(
                 {"engine.recompute=auto", "recomputes nothing", "engine.recompute=off"});
           }),
           "inactive");
  EXPECT_EQ(found.finding, "engine.recompute=auto recomputes nothing.");
  EXPECT_EQ(found.change, "engine.recompute=off");
  EXPECT_EQ(found.undo, "engine.recompute=auto");
}

TEST(Advice, LossScaleThatFalls) {
  const auto scales = [](std::vector<double> values) {
    return but([&](RunFacts& facts) {
      for (const double value : values)
        facts.loss_scale.push_back({std::ssize(facts.loss_scale), value});
    });
  };
  EXPECT_THAT(fired(scales({65536, 32768, 16384, 8192, 4096, 2048, 1024, 512, 256, 128})),
              Contains("loss-scale"));
  EXPECT_THAT(fired(scales({65536, 16384, 4096, 4096, 4096, 4096, 8192, 4096, 4096, 4096})),
              Not(Contains("loss-scale")))
      << "it has been found";
}

TEST(Advice, LossSpikeAndNotNoise) {
  const auto spike = [](double height) {
    return but([&](RunFacts& facts) { facts.loss[120].value += height; });
  };
  EXPECT_THAT(only(spike(2), "loss-spike").finding, HasSubstr("at step 1210"));
  EXPECT_THAT(fired(spike(0.06)), Not(Contains("loss-spike")));
}

TEST(Advice, Divergence) {
  const auto rising = [](double slope) {
    return but([&](RunFacts& facts) {
      for (size_t i = 100; i < facts.loss.size(); ++i)
        facts.loss[i].value += slope * static_cast<double>(i - 100);
    });
  };
  const std::vector<std::string> rules = fired(rising(0.03));
  EXPECT_THAT(rules, Contains("divergence"));
  EXPECT_THAT(rules, Not(Contains("plateau")));
  EXPECT_THAT(fired(rising(0.001)), Not(Contains("divergence")));
}

TEST(Advice, Plateau) {
  const auto still_from = [](size_t point) {
    return but([&](RunFacts& facts) {
      const double value = facts.loss[point].value;
      for (size_t i = point; i < facts.loss.size(); ++i)
        facts.loss[i].value = value + 0.01 * std::sin(static_cast<double>(i));
    });
  };
  EXPECT_EQ(only(still_from(80), "plateau").change, "train.early_stopping=5");
  EXPECT_THAT(fired(still_from(190)), Not(Contains("plateau")));
}

TEST(Advice, ValidationAboveTheBase) {
  const auto last = [](double value) {
    return but([&](RunFacts& facts) {
      for (CurvePoint& point : facts.validation_loss)
        if (point.step > 0) point.value = value;
    });
  };
  EXPECT_THAT(fired(last(4.5)), Contains("validation-above-base"));
  EXPECT_THAT(fired(last(4.0)), Not(Contains("validation-above-base")));
}

TEST(Advice, Overfitting) {
  const auto rising_from = [](size_t evaluation, double slope) {
    return but([&](RunFacts& facts) {
      for (size_t i = evaluation; i < facts.validation_loss.size(); ++i)
        facts.validation_loss[i].value =
            facts.validation_loss[evaluation].value + slope * static_cast<double>(i - evaluation);
    });
  };
  const Advice found = only(rising_from(4, 0.2), "overfitting");
  EXPECT_EQ(found.change, "train.early_stopping=3");
  EXPECT_THAT(found.finding, HasSubstr("since step 1000"));
  EXPECT_THAT(fired(rising_from(4, 0.001)), Not(Contains("overfitting")));
  RunFacts falling_apart = rising_from(4, 0.2);  // both rise: that is no overfitting
  for (CurvePoint& point : falling_apart.loss)
    if (point.step >= 1000) point.value += 0.002 * static_cast<double>(point.step - 1000);
  EXPECT_THAT(fired(falling_apart), Not(Contains("overfitting")));
}

TEST(Advice, ParametersWithoutGradient) {
  const Advice found = only(but([](RunFacts& facts) {
                              facts.idle_parameters = {"a", "b", "c", "d", "e"};
                            }),
                            "no-gradient");
  EXPECT_THAT(found.finding, HasSubstr("a, b, c, d and 1 more in 2000 steps"));
  EXPECT_EQ(found.change, "train.freeze=[a,b,c,d,e]");
  const Advice many = only(but([](RunFacts& facts) {
                             for (int i = 0; i < 40; ++i)
                               facts.idle_parameters.push_back(std::to_string(i));
                           }),
                           "no-gradient");
  EXPECT_EQ(many.change, "a loss that depends on them");
}

TEST(Advice, SkippedSteps) {
  const auto skipped = [](int64_t steps) {
    return but([&](RunFacts& facts) { facts.skipped_steps = steps; });
  };
  EXPECT_THAT(fired(skipped(40)), Contains("skipped-steps"));
  EXPECT_THAT(fired(skipped(3)), Not(Contains("skipped-steps")));
}

TEST(Advice, NodesWithoutAKernel) {
  const Advice found = only(but([](RunFacts& facts) {
                              facts.fallbacks = {{"tanh f32[4] in mlp", "model.cpp:7", "LLVM: no"},
                                                 {"exp f32[4]", "", "LLVM: no"}};
                            }),
                            "fallback");
  EXPECT_THAT(found.finding, HasSubstr("tanh f32[4] in mlp (model.cpp:7) has no kernel"));
  EXPECT_THAT(found.finding, HasSubstr("LLVM: no; and 1 more nodes"));
}

TEST(Advice, ARunThatIsCompiledWithLess) {
  const auto compiled = [](const std::string& effort, double start) {
    return but([&](RunFacts& facts) {
      facts.config.engine.compile = effort;
      put(facts, RunPhase::start, "compile", start);
    });
  };
  EXPECT_EQ(only(compiled("fast", 0), "compile").change, "engine.compile=full");
  EXPECT_EQ(only(compiled("off", 0), "compile").undo, "engine.compile=off");
  EXPECT_THAT(fired(compiled("fast", 50)), Not(Contains("compile")));  // a start of half the run
}

TEST(Advice, TheLargestGainComesFirst) {
  const std::vector<Advice> advice = advise(but([](RunFacts& facts) {
    put(facts, RunPhase::data, "wait for the batch", 10);
    put(facts, RunPhase::evaluation, "held out", 200);
    facts.idle_parameters = {"a"};
  }));
  ASSERT_EQ(advice.size(), 3U);
  EXPECT_EQ(advice[0].rule, "evaluations");
  EXPECT_EQ(advice[1].rule, "input-bound");
  EXPECT_EQ(advice[2].rule, "no-gradient");
}

TEST(Advice, TheBottleneckIsTheLongestPart) {
  EXPECT_THAT(bottleneck(healthy()),
              HasSubstr("matmul kernels take 75.0 % of the time, at 80 % of what the machine's "
                        "arithmetic allows"));
  const auto longest = [](RunPhase phase) {
    return bottleneck(but([&](RunFacts& facts) { put(facts, phase, "x", 200); }));
  };
  EXPECT_THAT(longest(RunPhase::data), HasSubstr("The input"));
  EXPECT_THAT(longest(RunPhase::evaluation), HasSubstr("Evaluations"));
  EXPECT_THAT(longest(RunPhase::checkpoint), HasSubstr("Saving"));
  EXPECT_THAT(longest(RunPhase::host), HasSubstr("The host"));
  EXPECT_THAT(longest(RunPhase::start), HasSubstr("The start"));
  EXPECT_THAT(bottleneck(but([](RunFacts& facts) { put(facts, RunPhase::step, kIdle, 200); })),
              HasSubstr("Gaps"));
  EXPECT_EQ(bottleneck(RunFacts{}), "Nothing was measured.");
}

}  // namespace
}  // namespace fullbore
