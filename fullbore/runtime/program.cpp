#include "fullbore/runtime/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/plan/written_memory.h"
#include "fullbore/runtime/quantized_state.h"
#include "fullbore/runtime/record_plan.h"

namespace fullbore {

struct Program::Implementation {
  Implementation(PreparedProgram prepared, State& bound, std::shared_ptr<Arena> shared_arena)
      : plan(std::move(prepared.plan)),
        state(bound),
        device(bound.device()),
        arena(shared_arena ? std::move(shared_arena) : std::make_shared<Arena>(bound.device())) {
    arena->reserve(plan.arena_bytes);
    const Plan* const own[] = {&plan};
    arena->expect_writes(written_memory(own));
    results = device.allocate(plan.result_bytes);
    constants = device.allocate(static_cast<int64_t>(plan.constants.size()));
    device.write(constants->address(), std::as_bytes(std::span(plan.constants)));
    addresses.resize(plan.buffers.size());
    for (size_t i = 0; i < plan.buffers.size(); ++i) place(i);
    list_writes();
    if (prepared.copies)
      copies = std::make_unique<Implementation>(
          PreparedProgram{std::move(*prepared.copies), {}, {}}, state, arena);
    loop_flops = flops_by_loop(plan);
    open_loops = has_open_loops(plan);
    batch_inputs = static_cast<size_t>(std::ranges::count_if(
        plan.graph.inputs(), [](const Graph::Input& input) { return !is_kept(input.role); }));
    record();
  }

  void place(size_t index) {
    const Buffer& buffer = plan.buffers[index];
    Address& address = addresses[index];
    switch (buffer.space) {
      case Space::result: address = results->address() + buffer.offset; break;
      case Space::constant: address = constants->address() + buffer.offset; break;
      case Space::state: address = state_address(buffer.index); break;
      case Space::arena:         // record()
      case Space::thread_group:  // in a buffer of the arena
      case Space::batch:         // bound at each run
      case Space::slice: break;  // in another buffer
    }
  }

  /// Again when another program has made the arena larger.
  void record() {
    arena->reserve(plan.arena_bytes);
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].space == Space::arena)
        addresses[i] = arena->address() + plan.buffers[i].offset;
    replayable = record_plan(plan, addresses, device);
    replayable->set_profiling(is_profiling);
  }

  Address state_address(int input_index) {
    const Graph::Input& input = plan.graph.inputs()[static_cast<size_t>(input_index)];
    const int entry = state.find(input.name);
    if (input.role == Role::derived && entry < 0) return derived_address(input);
    if (entry < 0)
      throw UsageError(fmt::format("the program '{}' needs State '{}' {}, which does not exist",
                                   plan.graph.name(), input.name,
                                   plan.graph.type(input.value).text()));
    const TensorType& found = state.entries()[static_cast<size_t>(entry)].type;
    if (found != plan.graph.type(input.value))
      throw UsageError(fmt::format("the program '{}' needs State '{}' as {}, it is {}",
                                   plan.graph.name(), input.name,
                                   plan.graph.type(input.value).text(), found.text()));
    return state.address(entry);  // run() notes what is written
  }

  Address derived_address(const Graph::Input& input) {
    const int derived = state.add_derived(*input.derived, plan.graph.type(input.value));
    read_derived.push_back(derived);
    return state.derived_address(derived);
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

  void run(std::span<const void* const> batch) {
    if (copies &&
        std::ranges::any_of(read_derived, [&](int derived) { return state.is_outdated(derived); }))
      copies->run({});
    if (!replayable) record();
    replayable->bind_batch(batch);
    replayable->run();
    replayable->wait();
    for (const int entry : written_entries) state.was_written(entry);
    for (const int derived : written_derived) state.derived_was_made(derived);
  }

  /// UsageError: not one pointer for each batch input, or memory that kernels cannot read.
  void require_batch(std::span<const void* const> batch, SourceLoc loc) const {
    constexpr uintptr_t kAlignment = 64;
    const bool fits =
        batch.size() == batch_inputs && std::ranges::none_of(batch, [](const void* data) {
          return data == nullptr || reinterpret_cast<uintptr_t>(data) % kAlignment != 0;
        });
    if (!fits) [[unlikely]]
      refuse_batch(batch, loc);
  }

  void refuse_batch(std::span<const void* const> batch, SourceLoc loc) const {
    std::vector<std::string> fields;
    std::string wrong;
    for (const Graph::Input& input : plan.graph.inputs()) {
      if (input.role != Role::batch) continue;
      const size_t place = fields.size();
      const std::string type = plan.graph.type(input.value).text();
      fields.push_back(fmt::format("{} {}", input.name, type));
      if (wrong.empty() && place < batch.size() && batch[place] == nullptr &&
          plan.graph.type(input.value).bytes() > 0)
        wrong = fmt::format("no memory is given for field '{}', {}", input.name, type);
      if (wrong.empty() && place < batch.size() &&
          reinterpret_cast<uintptr_t>(batch[place]) % 64 != 0)
        wrong = fmt::format("the memory of field '{}', {}, is not aligned to 64 bytes", input.name,
                            type);
    }
    if (batch.size() != batch_inputs)
      wrong =
          fmt::format("{} pointers are given for a batch of {} fields", batch.size(), batch_inputs);
    if (wrong.empty()) return;  // what has no elements needs no memory
    throw UsageError(
        fmt::format("the program '{}': {}. Its batch is {}", plan.graph.name(), wrong,
                    fields.empty() ? "empty" : fmt::format("{}", fmt::join(fields, ", "))),
        loc);
  }

  /// Of the last run's loop; -1: it is not known.
  int64_t iterations_of(int loop) const {
    return replayable ? replayable->iterations_made(loop) : -1;
  }

  const Buffer& result_buffer(int output, SourceLoc loc) const {
    const std::vector<Graph::Output>& outputs = plan.graph.outputs();
    if (output < 0 || static_cast<size_t>(output) >= outputs.size())
      throw UsageError(fmt::format("the program '{}' has no result {}: it has {} outputs",
                                   plan.graph.name(), output, outputs.size()),
                       loc);
    const auto place = static_cast<size_t>(output);
    if (plan.result_buffers[place] < 0)
      throw UsageError(
          fmt::format("output '{}' of the program '{}' is State: State::read() reads it",
                      outputs[place].name, plan.graph.name()),
          loc);
    return plan.buffers[static_cast<size_t>(plan.result_buffers[place])];
  }

  Plan plan;
  State& state;
  Device& device;
  std::shared_ptr<Arena> arena;
  std::unique_ptr<DeviceMemory> results;
  std::unique_ptr<DeviceMemory> constants;
  std::vector<Address> addresses;  ///< by buffer
  size_t batch_inputs = 0;
  std::vector<LoopFlops> loop_flops;
  bool open_loops = false;
  bool is_profiling = false;
  std::unique_ptr<Replayable> replayable;  ///< null: the arena has moved since it last ran
  Arena::User arena_user{arena, [this] { replayable.reset(); }};
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

Program Program::compile(const Graph& graph, State& state, const CompileOptions& options,
                         CompileReport* report, std::shared_ptr<Arena> arena) {
  PreparedProgram prepared = prepare_program(in_8_bits(graph, state), state.device(), options);
  if (report) *report = prepared.report;
  return bind(std::move(prepared), state, std::move(arena));
}

Program Program::bind(PreparedProgram prepared, State& state, std::shared_ptr<Arena> arena) {
  return Program(std::make_unique<Implementation>(std::move(prepared), state, std::move(arena)));
}

void Program::run(std::span<const void* const> batch, SourceLoc loc) {
  Implementation& self = *implementation_;
  self.require_batch(batch, loc);
  self.run(batch);
}

const Plan& Program::plan() const { return implementation_->plan; }

int Program::output(std::string_view name, SourceLoc loc) const {
  const int index = plan().graph.find_output(name);
  if (index < 0) {
    std::vector<std::string> names;
    for (const Graph::Output& each : plan().graph.outputs())
      if (each.updates < 0) names.push_back(each.name);
    throw UsageError(
        fmt::format("the program '{}' has no result '{}'.{} Its results are {}",
                    plan().graph.name(), name, did_you_mean(name, names), fmt::join(names, ", ")),
        loc);
  }
  return index;
}

const TensorType& Program::result_type(int output) const {
  return plan().graph.type(plan().graph.outputs()[static_cast<size_t>(output)].value);
}

int64_t Program::require_result(int output, bool (*suits)(DType), size_t width,
                                SourceLoc loc) const {
  implementation_->result_buffer(output, loc);
  const TensorType& type = result_type(output);
  if (!suits(type.dtype))
    throw UsageError(
        fmt::format(
            "result '{}' is {}, of elements of {} bytes, and was asked for as another type, "
            "of {} bytes",
            plan().graph.outputs()[static_cast<size_t>(output)].name, type.text(),
            dtype_bytes(type.dtype), width),
        loc);
  return type.bytes();
}

void Program::read_result(int output, std::span<std::byte> to, int64_t offset,
                          SourceLoc loc) const {
  const Buffer& buffer = implementation_->result_buffer(output, loc);
  if (offset < 0 || offset + static_cast<int64_t>(to.size()) > buffer.bytes)
    throw UsageError(
        fmt::format("{} bytes at {} of result '{}' were asked for, which has {}", to.size(), offset,
                    plan().graph.outputs()[static_cast<size_t>(output)].name, buffer.bytes),
        loc);
  implementation_->device.read(implementation_->results->address() + buffer.offset + offset, to);
}

double Program::scalar(std::string_view name, SourceLoc loc) const {
  const int index = output(name, loc);
  const TensorType& type = result_type(index);
  if (type.elements() != 1)
    throw UsageError(
        fmt::format("result '{}' is {}, which is no single number: read_result() reads "
                    "it",
                    name, type.text()),
        loc);
  std::byte bytes[8] = {};
  read_result(index, std::span(bytes).first(static_cast<size_t>(type.bytes())), 0, loc);
  return load_element(bytes, type.dtype, 0);
}

LoopIterations Program::iterations_made() const {
  const Implementation& self = *implementation_;
  LoopIterations made = most_iterations(self.plan);
  if (!self.open_loops) return made;
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] == 0) continue;  // no loop, or one of no iterations
    const int64_t iterations = self.iterations_of(static_cast<int>(i));
    if (iterations < 0) return {};
    made[i] = static_cast<double>(iterations);
  }
  return made;
}

double Program::flops_made() const {
  const Implementation& self = *implementation_;
  if (!self.open_loops) return self.plan.flops;
  double flops = 0;
  for (const LoopFlops& part : self.loop_flops) {
    const int64_t iterations = part.loop < 0 ? 1 : self.iterations_of(part.loop);
    if (iterations < 0) return std::numeric_limits<double>::quiet_NaN();
    flops += static_cast<double>(iterations) * part.flops;
  }
  return flops;
}

void Program::set_profiling(bool on) {
  implementation_->is_profiling = on;
  if (implementation_->replayable) implementation_->replayable->set_profiling(on);
}

std::vector<LaneEvents> Program::events() const {
  return implementation_->replayable ? implementation_->replayable->events()
                                     : std::vector<LaneEvents>();
}

}  // namespace fullbore
