#include "tests/support/first_non_finite_step.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>

#include "fullbore/app/job_options.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/ops/ops.h"
#include "fullbore/text/text_model.h"
#include "fullbore/train/bad_step.h"
#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore::testing {
namespace {

using ::testing::HasSubstr;
using testing_support::cpu_device;
using testing_support::Edited;

/// The first step of a job in two microbatches.
class WorkloadStep {
 public:
  WorkloadStep(const std::string& configuration, std::vector<std::string> overrides,
               const std::function<Tensor(Tensor loss)>& planted = {}) {
    overrides.insert(overrides.end(), {"engine.parallel_microbatches=2", "engine.threads=2"});
    const Config config =
        load_config(testing::source_folder() + "/configs/" + configuration, overrides);
    Console console(-1);
    const MeasuredJob measured = measured_job(config, is_text_model(config) ? 16 : 0, console);
    const LossFunction own = measured.job.loss;
    const LossFunction loss = [&](Trace& trace, std::span<const Tensor> batch) -> Loss {
      Loss value = own(trace, batch);
      if (!planted) return value;
      value.mean = planted(value.mean);
      for (LossTerm& term : value.terms) term.mean = planted(term.mean);
      return value;
    };
    const TrainingOptions& options = measured.job.options;
    compile_ = options.compile;
    const BatchSource& batches = *measured.job.training;
    const std::vector<BatchField> fields = batches.shapes()[batches.shape_at(0)];
    step_ = trace_training_step(loss, fields, options.optimizer, options.parts);
    state_ = std::make_unique<State>(initial_state(step_, 1, cpu_device(2)));
    std::vector<void*> buffers;
    for (const BatchField& field : fields) {
      const auto bytes = static_cast<size_t>(field.type.bytes());
      memory_.emplace_back(std::aligned_alloc(64, (bytes + 64) / 64 * 64), std::free);
      buffers.push_back(memory_.back().get());
    }
    batches.fill(0, buffers);
    pointers_.assign(buffers.begin(), buffers.end());
  }

  /// Every element of a parameter.
  void set(const std::string& parameter, float value) {
    ASSERT_GE(state_->find(parameter), 0) << parameter;
    std::ranges::fill(Edited<float>(*state_, parameter), value);
  }
  std::string finding() { return first_non_finite(step_.graph, *state_, pointers_, compile_); }

 private:
  CompileOptions compile_;
  TracedStep step_;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
  std::vector<const void*> pointers_;
};

}  // namespace

void expect_named_in_forward_pass(const NonFiniteCase& each) {
  WorkloadStep step(each.configuration, each.overrides);
  step.set(each.gain, 3e38F);
  const std::string finding = step.finding();
  EXPECT_THAT(finding, HasSubstr(fmt::format(" in {}", each.where))) << finding;
  EXPECT_THAT(finding, HasSubstr("microbatch 1 of 2")) << finding;
  EXPECT_THAT(finding, HasSubstr("made an infinity first")) << finding;
  // The core of the recursion is a loop of the model's own.
  if (each.is_recursive) {
    EXPECT_THAT(finding, HasSubstr("iteration 1 of ")) << finding;
  }
}

void expect_named_in_backward_pass_and_optimizer(const NonFiniteCase& each) {
  int line = 0;
  WorkloadStep backward(each.configuration, each.overrides, [&](Tensor loss) {
    line = __LINE__ + 1;
    return loss + sqrt(abs(loss) - maximum(loss, -loss));
  });
  EXPECT_THAT(backward.finding(),
              HasSubstr(fmt::format("(support/first_non_finite_step.cpp:{}), backward pass, "
                                    "microbatch 1 of 2, made an infinity first",
                                    line)));
  WorkloadStep optimizer(each.configuration, each.overrides,
                         [](Tensor loss) { return loss * 1e25; });
  EXPECT_THAT(optimizer.finding(), HasSubstr(" in optimizer (optim/")) << each.configuration;
}

}  // namespace fullbore::testing
