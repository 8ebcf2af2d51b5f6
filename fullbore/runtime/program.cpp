#include "fullbore/runtime/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/runtime/quantized_state.h"

namespace fullbore {

struct Program::Implementation {
  Implementation(PreparedProgram prepared, State& bound, Team& team,
                 std::shared_ptr<Arena> shared_arena)
      : plan(std::move(prepared.plan)),
        state(bound),
        arena(shared_arena ? std::move(shared_arena) : std::make_shared<Arena>()) {
    arena->reserve(plan.arena_bytes);
    results = allocate_or_throw(plan.result_bytes);
    constants = allocate_or_throw(static_cast<int64_t>(plan.constants.size()));
    if (!plan.constants.empty())
      std::memcpy(constants.get(), plan.constants.data(), plan.constants.size());
    pointers.resize(plan.buffers.size(), nullptr);
    for (size_t i = 0; i < plan.buffers.size(); ++i) bind(static_cast<int>(i));
    bind_arena();
    list_writes();
    if (prepared.copies)
      copies = std::make_unique<Implementation>(
          PreparedProgram{std::move(*prepared.copies), {}, {}}, state, team, arena);
    for (size_t i = 0; i < plan.graph.inputs().size(); ++i)
      if (!is_kept(plan.graph.inputs()[i].role))
        batch.push_back(buffer_of_input(static_cast<int>(i)));
    replay = std::make_unique<Replay>(plan, pointers, team);
  }

  int buffer_of_input(int index) const {
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].index == index && plan.buffers[i].space == Space::batch)
        return static_cast<int>(i);
    FB_CHECK(false, "batch input {} has no buffer", index);
  }

  void bind(int index) {
    const Buffer& buffer = plan.buffers[static_cast<size_t>(index)];
    void*& pointer = pointers[static_cast<size_t>(index)];
    switch (buffer.space) {
      case Space::arena:
      case Space::thread_group: break;  // bind_arena()
      case Space::result: pointer = results.get() + buffer.offset; break;
      case Space::constant: pointer = constants.get() + buffer.offset; break;
      case Space::state: pointer = state_pointer(buffer.index); break;
      case Space::batch:
      case Space::slice: break;  // set at each run, at each trip
    }
  }

  /// Again after another program has made the arena larger.
  void bind_arena() {
    char* const data = arena->data();
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      if (buffer.space == Space::arena) pointers[i] = data + buffer.offset;
      if (buffer.space == Space::thread_group)  // of the first thread group
        pointers[i] = data + plan.buffers[static_cast<size_t>(buffer.base)].offset + buffer.offset;
    }
    arena_data = data;
  }

  void* state_pointer(int input_index) {
    const Graph::Input& input = plan.graph.inputs()[static_cast<size_t>(input_index)];
    const int entry = state.find(input.name);
    if (input.role == Role::derived && entry < 0) return derived_pointer(input);
    if (entry < 0)
      throw UsageError(fmt::format("the program '{}' needs State '{}' {}, which does not exist",
                                   plan.graph.name(), input.name,
                                   plan.graph.type(input.value).text()));
    const TensorType& found = state.entries()[static_cast<size_t>(entry)].type;
    if (found != plan.graph.type(input.value))
      throw UsageError(fmt::format("the program '{}' needs State '{}' as {}, it is {}",
                                   plan.graph.name(), input.name,
                                   plan.graph.type(input.value).text(), found.text()));
    return const_cast<void*>(state.data(entry));  // run() notes what is written
  }

  void* derived_pointer(const Graph::Input& input) {
    const int derived = state.add_derived(*input.derived, plan.graph.type(input.value));
    read_derived.push_back(derived);
    return state.derived_data(derived);
  }

  /// What a run writes.
  void list_writes() {
    for (const Graph::Output& output : plan.graph.outputs()) {
      if (output.updates < 0) continue;
      const Graph::Input& input = plan.graph.inputs()[static_cast<size_t>(output.updates)];
      if (const int entry = state.find(input.name); entry >= 0)
        written_entries.push_back(entry);
      else
        written_derived.push_back(state.add_derived(*input.derived, plan.graph.type(input.value)));
    }
  }

  void run() {
    if (copies &&
        std::ranges::any_of(read_derived, [&](int derived) { return state.is_outdated(derived); }))
      copies->run();
    if (arena->data() != arena_data) bind_arena();
    replay->run();
    for (const int entry : written_entries) state.mutable_data(entry);
    for (const int derived : written_derived) state.derived_was_made(derived);
  }

  Plan plan;
  State& state;
  std::shared_ptr<Arena> arena;
  const char* arena_data = nullptr;  ///< where its buffers are bound
  TensorMemory results;
  TensorMemory constants;
  std::vector<void*> pointers;
  std::vector<int> batch;
  std::unique_ptr<Replay> replay;
  std::vector<int> read_derived;
  std::vector<int> written_entries;
  std::vector<int> written_derived;        ///< of what is written, or of what is not
  std::unique_ptr<Implementation> copies;  ///< makes those that are read
};

Program::Program(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::compile(const Graph& graph, State& state, Team& team,
                         const CompileOptions& options, CompileReport* report,
                         std::shared_ptr<Arena> arena) {
  PreparedProgram prepared = prepare_program(in_8_bits(graph, state), options, team.workers());
  if (report) *report = prepared.report;
  return bind(std::move(prepared), state, team, std::move(arena));
}

Program Program::bind(PreparedProgram prepared, State& state, Team& team,
                      std::shared_ptr<Arena> arena) {
  return Program(
      std::make_unique<Implementation>(std::move(prepared), state, team, std::move(arena)));
}

void Program::run(std::span<const void* const> batch) {
  Implementation& self = *implementation_;
  FB_CHECK(batch.size() == self.batch.size(), "{} batch tensors for {}", batch.size(),
           self.batch.size());
  // Kernels take one table for what they read and write; batch inputs are never written.
  for (size_t i = 0; i < batch.size(); ++i)
    self.pointers[static_cast<size_t>(self.batch[i])] = const_cast<void*>(batch[i]);
  self.run();
}

const Plan& Program::plan() const { return implementation_->plan; }

int Program::output(std::string_view name) const {
  const int index = plan().graph.find_output(name);
  FB_CHECK(index >= 0, "no output '{}' of '{}'", name, plan().graph.name());
  return index;
}

const void* Program::result(int output) const {
  const int buffer = plan().result_buffers[static_cast<size_t>(output)];
  FB_CHECK(buffer >= 0, "output {} is State", output);
  return implementation_->pointers[static_cast<size_t>(buffer)];
}

double Program::scalar(std::string_view name) const {
  const int index = output(name);
  const TensorType& type =
      plan().graph.type(plan().graph.outputs()[static_cast<size_t>(index)].value);
  FB_CHECK(type.elements() == 1, "'{}' is {}", name, type.text());
  return load_element(result(index), type.dtype, 0);
}

void Program::set_profiling(bool on) { implementation_->replay->set_profiling(on); }

std::vector<WorkerEvents> Program::events() const { return implementation_->replay->events(); }

}  // namespace fullbore
