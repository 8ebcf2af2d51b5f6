#include "tests/cuda/loop_programs.h"

#include <span>

namespace fullbore::cuda {

LoopPrograms::Outcome LoopPrograms::outcome_of(const Words& before, const std::vector<int>& loops,
                                               const Record& record) {
  const auto device = open();
  const auto bytes = static_cast<int64_t>(8 * before.size());
  const auto memory = device->allocate(bytes);
  const auto recorder = device->record();
  record(*recorder, memory->address());
  const auto program = recorder->finish();
  Outcome outcome;
  for (int run = 0; run < 2; ++run) {
    device->write(memory->address(), std::as_bytes(std::span(before)));
    const FakeCuda now = fake();
    program->run();
    outcome.calls = fake().calls - now.calls;
    outcome.graph_launches = fake().graph_launches - now.graph_launches;
    outcome.waits = fake().orders - now.orders;
    program->wait();
    outcome.launches = fake().launches - now.launches;
  }
  for (const int loop : loops) outcome.iterations.push_back(program->iterations_made(loop));
  outcome.memory.resize(before.size());
  device->read(memory->address(), std::as_writable_bytes(std::span(outcome.memory)));
  return outcome;
}

LoopPrograms::Outcome LoopPrograms::checked(const Words& before, const std::vector<int>& loops,
                                            const Record& record) {
  Outcome graphs = outcome_of(before, loops, record);
  const int64_t version = fake().version;
  for (const int64_t each : {kWithConditionalNodes, kWithoutConditionalNodes})
    for (const uint64_t seed : {0, 1, 2}) {
      if (each == version && seed == 0) continue;
      fake().version = each;
      fake().seed = seed;
      const Outcome other = outcome_of(before, loops, record);
      EXPECT_EQ(other.memory, graphs.memory) << "driver " << each << ", seed " << seed;
      EXPECT_EQ(other.iterations, graphs.iterations) << "driver " << each << ", seed " << seed;
    }
  fake().version = version;
  fake().seed = 0;
  const Variable blocking("FULLBORE_CUDA_BLOCKING", "1");
  const Outcome alone = outcome_of(before, loops, record);
  EXPECT_EQ(alone.memory, graphs.memory);
  EXPECT_EQ(alone.iterations, graphs.iterations);
  EXPECT_EQ(alone.graph_launches, 0);
  return graphs;
}

LoopPrograms::Words LoopPrograms::drawn(size_t rows, uint64_t count) {
  Words words(rows * kWords);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * 2654435761 % 251;
  words[0] = count;
  return words;
}

}  // namespace fullbore::cuda
