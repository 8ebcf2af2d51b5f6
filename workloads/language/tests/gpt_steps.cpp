#include "workloads/language/tests/gpt_steps.h"

#include <cstdlib>
#include <memory>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/language/models.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kBatch = 12;
constexpr int64_t kContext = 64;
constexpr int64_t kVocabulary = 65;

}  // namespace

GptSteps gpt_steps(int steps, const Microbatches& parts, const CompileOptions& options) {
  const TensorType type{DType::i32, {kBatch, kContext}};
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const LanguageModelConfig config{.vocabulary = kVocabulary, .layers = 2};
    const LanguageModelLoss found = gpt_loss(trace, batch[0], batch[1], config);
    return {found.mean, found.predictions};
  };
  const TracedStep step =
      trace_training_step(loss, {{"inputs", type}, {"targets", type}}, {}, parts);
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state, options);
  const auto bytes = static_cast<size_t>(type.bytes());
  const std::unique_ptr<int32_t, void (*)(void*)> inputs(
      static_cast<int32_t*>(std::aligned_alloc(64, bytes)), std::free);
  const std::unique_ptr<int32_t, void (*)(void*)> targets(
      static_cast<int32_t*>(std::aligned_alloc(64, bytes)), std::free);
  GptSteps result;
  result.arena_bytes = program.plan().arena_bytes;
  result.peak_bytes = program.plan().peak_bytes();
  PhiloxStream draws(11);
  for (int i = 0; i < steps; ++i) {
    for (int64_t at = 0; at < kBatch * kContext; ++at) {
      inputs.get()[at] = static_cast<int32_t>(draws.below(kVocabulary));
      // A target below 0 does not count: rows have unequally many.
      targets.get()[at] = at % kContext < (at / kContext + 1) * 5
                              ? static_cast<int32_t>(draws.below(kVocabulary))
                              : -1;
    }
    const void* const batch[] = {inputs.get(), targets.get()};
    program.run(batch);
    result.losses.push_back(program.scalar("loss"));
    result.norms.push_back(program.scalar("gradient_norm"));
  }
  return result;
}

}  // namespace fullbore
