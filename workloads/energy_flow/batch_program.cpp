#include "workloads/energy_flow/batch_program.h"

#include <algorithm>
#include <new>

#include "fullbore/app/job_options.h"

namespace fullbore::energy_flow {

BatchProgram::BatchProgram(const Graph& graph, State& state, const Config& config,
                           const std::shared_ptr<Arena>& arena)
    : program_(Program::compile(graph, state, trained_options(config), nullptr, arena)) {
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::batch) continue;
    memory_.push_back(allocate_tensor_memory(graph.type(input.value).bytes()));
    if (!memory_.back()) throw std::bad_alloc();
    inputs_.push_back(memory_.back().get());
  }
}

void BatchProgram::set(size_t input, int64_t row, const float* from, int64_t count) {
  std::copy_n(from, count, reinterpret_cast<float*>(memory_[input].get()) + row * count);
}

}  // namespace fullbore::energy_flow
