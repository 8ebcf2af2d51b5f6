// What is planned to see that a run fits is what the run goes on with.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/app/memory_plan.h"
#include "fullbore/app/own_model.h"
#include "fullbore/nn/modules.h"
#include "fullbore/runtime/planned_programs.h"
#include "fullbore/train/run_programs.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

constexpr int kWorkers = 2;

OwnModel some_model() {
  OwnModel model{.loss = [](Trace& trace, const BatchTensors& batch) -> Loss {
                   const Tensor y = nn::linear(trace, "only", batch[0], 4);
                   Loss loss = reduce_mean(y * y, {0, 1});
                   loss.metrics = {{"size", reduce_mean(abs(y), {0, 1})}};
                   return loss;
                 },
                 .data = batches({{"x", DType::f32, {8, 4}}}, [](uint64_t, BatchView) {}),
                 .name = "mine"};
  model.evaluation = model.data;
  return model;
}

struct Programs {
  size_t planned_before = 0;
  size_t count = 0;
  std::string step;
};

class StartPlans : public ::testing::Test {
 protected:
  StartPlans() {
    config_.model.name = "mine";
    config_.train.batch_size = 8;
    config_.engine.threads = kWorkers;
    opened_ = own_workload(some_model()).open(config_, console_, {});
    const FittedConfig fitted = fit_memory(config_, opened_);
    job_ = opened_.job(fitted.config);
    set_plans(fitted.config, fitted.run, job_);
  }

  /// As a run has them before its first step.
  Programs programs() const {
    std::vector<TracedStep> traced = trace_steps(job_);
    State state = initial_state(traced.front(), 1, testing_support::cpu_device(kWorkers));
    const RunPrograms all(job_, std::move(traced), state, {});
    return {all.planned_before(), all.count(), plan_text(all.largest_step())};
  }

  Console console_{-1};
  Config config_;
  OpenedWorkload opened_;
  TrainingJob job_;
};

TEST_F(StartPlans, AreThoseThatTheRunFits) {
  const Programs first = programs();
  EXPECT_EQ(first.count, 2U);
  EXPECT_EQ(first.planned_before, 2U);
  const Programs second = programs();  // nothing is left to be taken
  EXPECT_EQ(second.planned_before, 0U);
  EXPECT_EQ(second.step, first.step);
}

// Of a job that was changed since.
TEST_F(StartPlans, AreNotTakenForWhatWasNotPlanned) {
  job_.options.metrics = MetricsLevel::loss;  // of steps
  EXPECT_EQ(programs().planned_before, 1U);
  job_.options.metrics = MetricsLevel::all;
  EXPECT_EQ(programs().planned_before, 0U);  // the step was not kept for anybody else
}
TEST_F(StartPlans, AreNotTakenWithOtherSettings) {
  job_.options.compile.precision = DType::bf16;
  EXPECT_EQ(programs().planned_before, 0U);
}

}  // namespace
}  // namespace fullbore
