#include "fullbore/train/bound_program.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"

namespace fullbore {

BoundProgram::BoundProgram(const Graph& graph, State& state, const CompileOptions& options)
    : program_(Program::compile(graph, state, options)) {
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::batch) continue;
    const int64_t bytes = graph.type(input.value).bytes();
    TensorMemory memory = allocate_tensor_memory(bytes);
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, static_cast<size_t>(bytes));
    inputs_.insert_or_assign(input.name, Input{std::move(memory), bytes});
  }
  for (const Graph::Input& input : program_.plan().graph.inputs())
    if (input.role == Role::batch) pointers_.push_back(of_name(input.name).memory.get());
}

const BoundProgram::Input& BoundProgram::of_name(const std::string& name) const {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, input] : inputs_) names.push_back(known);
    throw UsageError(fmt::format("the program '{}' has no input '{}'.{}",
                                 program_.plan().graph.name(), name, did_you_mean(name, names)));
  }
  return found->second;
}

}  // namespace fullbore
