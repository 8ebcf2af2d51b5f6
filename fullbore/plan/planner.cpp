#include "fullbore/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/device/overlapping_launches.h"
#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/plan/concurrent_launches.h"

namespace fullbore {
namespace {

// Sources up to this size are evaluated while compiling and kept as constants; larger ones (a long
// iota) are cheaper to make again than to read. A table is kept whatever its size: nothing makes it.
constexpr int64_t kConstantLimitBytes = 64 << 10;

bool is_table(const Graph& graph, const Node& node) {
  return node.op == op::constant && !number_everywhere(graph, node.outputs[0]);
}

bool is_constant(const Graph& graph, const Node& node) {
  return node.op->is(Tag::source) &&
         (graph.type(node.outputs[0]).bytes() <= kConstantLimitBytes || is_table(graph, node));
}

bool needs_kernel(const Graph& graph, const Node& node) {
  return !node.op->is(Tag::identity) && !is_constant(graph, node) && !is_loop(node);
}

std::string describe(const Node& node, Value value) {
  return fmt::format("%{} {}{}{}", value.id, node.op->name, node.scope.empty() ? "" : " ",
                     node.scope);
}

}  // namespace

Planner::Level::Level(const Graph& g, const Level* around, int at)
    : graph(g), scope{g, around ? &around->scope : nullptr, at} {
  const auto values = static_cast<size_t>(g.value_count());
  root.resize(values);
  last_read.resize(values, -1);
  buffer.resize(values, -1);
  fixed.resize(values, false);
  for (size_t i = 0; i < values; ++i) root[i] = {static_cast<int32_t>(i)};
  for (size_t i = 0; i < g.nodes().size(); ++i) {
    const Node& node = g.nodes()[i];
    if (node.op->is(Tag::identity)) {
      root[static_cast<size_t>(node.outputs[0].id)] = root_of(node.inputs[0]);
      continue;
    }
    for (Value input : node.inputs)
      last_read[static_cast<size_t>(root_of(input).id)] = static_cast<int>(i);
  }
  for (const Graph::Output& output : g.outputs())
    last_read[static_cast<size_t>(root_of(output.value).id)] = static_cast<int>(g.nodes().size());
}

void Planner::Level::bind(Value value, int buffer_index, bool is_fixed) {
  const auto id = static_cast<size_t>(root_of(value).id);
  buffer[id] = buffer_index;
  fixed[id] = is_fixed;
}

int Planner::new_buffer(Space space, int64_t bytes, std::string what) {
  Buffer buffer;
  buffer.space = space;
  buffer.bytes = bytes;
  buffer.what = std::move(what);
  if (space == Space::thread_group) buffer.base = memory_;
  plan_.buffers.push_back(std::move(buffer));
  lifetimes_.push_back({bytes, clock_, clock_});
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int Planner::new_slice(int base, int64_t stride, std::string what) {
  const int slice = new_buffer(Space::slice, stride, std::move(what));
  plan_.buffers[static_cast<size_t>(slice)].base = base;
  plan_.buffers[static_cast<size_t>(slice)].stride = stride;
  return slice;
}

// A read or write at `time`; of a row, the whole buffer that it belongs to.
void Planner::touch(int buffer, int time) {
  for (int b = buffer; b >= 0; b = plan_.buffers[static_cast<size_t>(b)].base)
    lifetimes_[static_cast<size_t>(b)].last =
        std::max(lifetimes_[static_cast<size_t>(b)].last, time);
}

void Planner::touch_inputs(Level& level, const Node& node) {
  for (Value input : node.inputs) touch(level.buffer_of(input), clock_);
}

PlannedLaunch Planner::copy_launch(int from, int to) {
  touch(from, clock_);
  touch(to, clock_);
  PlannedLaunch launch;
  launch.kind = PlannedLaunch::Kind::copy;
  launch.buffers = {from, to};
  ++clock_;
  return launch;
}

bool Planner::made_by_kernel(const Level& level, Value value) const {
  const int producer = level.graph.producer(level.root_of(value));
  return producer >= 0 && level.kernels[static_cast<size_t>(producer)] != nullptr;
}

bool Planner::may_replace(const Level& level, Value previous, Value value) const {
  if (!options_.reuse_memory || !made_by_kernel(level, value)) return false;
  const Value root = level.root_of(value);
  const int producer = level.graph.producer(root);
  const Node& node = level.graph.nodes()[static_cast<size_t>(producer)];
  if (level.last_read_of(previous) > producer) return false;
  const auto output = std::find(node.outputs.begin(), node.outputs.end(), root);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (level.root_of(node.inputs[i]) == level.root_of(previous) &&
        !level.kernels[static_cast<size_t>(producer)]->may_alias(
            static_cast<int>(i), static_cast<int>(output - node.outputs.begin())))
      return false;
  return true;
}

void Planner::compile_kernels(Level& level) {
  for (const Node& node : level.graph.nodes()) {
    if (!needs_kernel(level.graph, node)) {
      level.kernels.emplace_back();
      level.kernel_index.push_back(-1);
      continue;
    }
    level.kernels.emplace_back(compiler_.compile(level.graph, node, workers_));
    level.kernel_index.push_back(static_cast<int>(plan_.kernels.size()));
    plan_.kernels.push_back(level.kernels.back());
  }
}

void Planner::plan_constant(Level& level, const Node& node) {
  ReferenceCall call{
      {}, {Literal(level.graph.type(node.outputs[0]))}, node.attributes, nullptr, {}};
  node.op->reference(call);
  const std::vector<char> bytes = call.outputs[0].bytes();
  const int buffer = new_buffer(Space::constant, static_cast<int64_t>(bytes.size()),
                                describe(node, node.outputs[0]));
  plan_.buffers.back().offset = static_cast<int64_t>(plan_.constants.size());
  plan_.constants.insert(plan_.constants.end(), bytes.begin(), bytes.end());
  plan_.constants.resize(
      static_cast<size_t>(aligned(static_cast<int64_t>(plan_.constants.size()))));
  level.bind(node.outputs[0], buffer, true);
}

// Would a node that writes over a small value have to wait for others that read it?
bool Planner::delays_others(const Level& level, Value root, int index, int64_t bytes) const {
  const auto* const overlapping = dynamic_cast<const OverlappingLaunches*>(&compiler_);
  if (overlapping == nullptr || !options_.late_reuse || bytes > overlapping->small_value_bytes())
    return false;
  const std::vector<Node>& nodes = level.graph.nodes();
  const auto reads = [&](const Node& node) {
    return !node.op->is(Tag::identity) && std::ranges::any_of(node.inputs, [&](Value input) {
      return level.root_of(input) == root;
    });
  };
  const int first = std::max(0, level.graph.producer(root));
  return std::any_of(nodes.begin() + first, nodes.begin() + index, reads);
}

// The input whose buffer this output may overwrite, or -1: it dies here, is as large, and the
// kernel reads each element before writing it.
int Planner::reusable_input(const Level& level, int index, size_t output) const {
  if (!options_.reuse_memory) return -1;
  const Node& node = level.graph.nodes()[static_cast<size_t>(index)];
  const int64_t bytes = level.graph.type(node.outputs[output]).bytes();
  for (Value input : node.inputs) {
    const Value root = level.root_of(input);
    const int buffer = level.buffer_of(input);
    if (level.fixed[static_cast<size_t>(root.id)] || level.last_read_of(input) != index ||
        plan_.buffers[static_cast<size_t>(buffer)].space != working_space() ||
        plan_.buffers[static_cast<size_t>(buffer)].bytes != bytes || bytes == 0)
      continue;
    bool allowed = !delays_others(level, root, index, bytes);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (level.buffer_of(node.inputs[i]) == buffer)
        allowed = allowed && level.kernels[static_cast<size_t>(index)]->may_alias(
                                 static_cast<int>(i), static_cast<int>(output));
    for (size_t other = 0; other < output; ++other)
      allowed = allowed && level.buffer_of(node.outputs[other]) != buffer;
    if (allowed) return buffer;
  }
  return -1;
}

void Planner::plan_kernel(Level& level, int index) {
  const Node& node = level.graph.nodes()[static_cast<size_t>(index)];
  PlannedLaunch launch;
  launch.node = index;
  launch.kernel = level.kernel_index[static_cast<size_t>(index)];
  for (Value input : node.inputs) launch.buffers.push_back(level.buffer_of(input));
  touch_inputs(level, node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto target = level.target.find(node.outputs[i]);
    if (target != level.target.end()) {
      level.bind(node.outputs[i], target->second, true);
      touch(target->second, clock_);
    } else if (const int reused = reusable_input(level, index, i); reused >= 0) {
      level.bind(node.outputs[i], reused, false);
    } else {
      level.bind(node.outputs[i],
                 new_buffer(working_space(), level.graph.type(node.outputs[i]).bytes(),
                            describe(node, node.outputs[i])),
                 false);
    }
    launch.buffers.push_back(level.buffer_of(node.outputs[i]));
  }
  const int64_t scratch = level.kernels[static_cast<size_t>(index)]->scratch_bytes(workers_);
  if (scratch > 0)
    launch.buffers.push_back(
        new_buffer(working_space(), scratch, fmt::format("scratch of {}", node.op->name)));
  level.launches.push_back(std::move(launch));
  ++clock_;
}

void Planner::plan_nodes(Level& level) {
  for (size_t i = 0; i < level.graph.nodes().size(); ++i) {
    const Node& node = level.graph.nodes()[i];
    if (node.op->is(Tag::identity)) continue;  // shares its input's bytes
    const int begin = clock_;
    read_from_host(level, node.inputs);
    if (is_constant(level.graph, node))
      plan_constant(level, node);
    else if (is_loop(node))
      plan_loop(level, static_cast<int>(i));
    else
      plan_kernel(level, static_cast<int>(i));
    note_launches(level, begin);
    write_to_host(level, node);
  }
  for (const Graph::Output& output : level.graph.outputs()) {
    const HostEntry* const entry = is_whole(level) ? host_entry(output.updates) : nullptr;
    if (entry == nullptr || !entry->is_written) touch(level.buffer_of(output.value), clock_);
  }
}

// State that is replaced in place and results that are made where they are kept.
void Planner::assign_results(Level& level) {
  const Graph& graph = level.graph;
  for (const Graph::Output& output : graph.outputs()) {
    const Value root = level.root_of(output.value);
    if (output.updates < 0) {
      const int buffer =
          new_buffer(Space::result, graph.type(output.value).bytes(), "result " + output.name);
      plan_.result_buffers.push_back(buffer);
      if (made_by_kernel(level, output.value) && !level.target.contains(root))
        level.target[root] = buffer;
      continue;
    }
    plan_.result_buffers.push_back(-1);
    const Value slot = graph.inputs()[static_cast<size_t>(output.updates)].value;
    // What is in the host's memory and not read has no place on the device until it is made.
    if (host_entry(output.updates) != nullptr && level.last_read_of(slot) < 0) continue;
    if (!level.target.contains(root) && may_replace(level, slot, output.value))
      level.target[root] = level.buffer_of(slot);
  }
}

// What could not be made in place is copied at the end: results first, then State whose new value
// is the old value of other State (through a buffer of its own, for that may be replaced too), then
// the rest.
void Planner::finish_results(Level& level) {
  const Graph& graph = level.graph;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const int source = level.buffer_of(graph.outputs()[i].value);
    const int result = plan_.result_buffers[i];
    if (result >= 0 && result != source) level.launches.push_back(copy_launch(source, result));
  }
  std::vector<std::pair<int, int>> copies;
  for (const Graph::Output& output : graph.outputs()) {
    if (output.updates < 0 || host_entry(output.updates) != nullptr) continue;
    const int slot = level.buffer_of(graph.inputs()[static_cast<size_t>(output.updates)].value);
    int source = level.buffer_of(output.value);
    if (source == slot) continue;
    if (plan_.buffers[static_cast<size_t>(source)].space == Space::state) {
      const int kept = new_buffer(Space::arena, plan_.buffers[static_cast<size_t>(source)].bytes,
                                  "old value for " + output.name);
      level.launches.push_back(copy_launch(source, kept));
      source = kept;
    }
    copies.emplace_back(source, slot);
  }
  for (const auto& [source, slot] : copies) touch(source, clock_ + static_cast<int>(copies.size()));
  for (const auto& [source, slot] : copies) level.launches.push_back(copy_launch(source, slot));
}

void Planner::plan_graph() {
  Level level(plan_.graph);
  for (size_t i = 0; i < plan_.graph.inputs().size(); ++i) {
    const Graph::Input& input = plan_.graph.inputs()[i];
    const int64_t bytes = plan_.graph.type(input.value).bytes();
    const bool state = is_kept(input.role);
    const int buffer = new_buffer(state ? Space::state : Space::batch, bytes, input.name);
    plan_.buffers.back().index = static_cast<int>(i);
    plan_.buffers.back().in_host = options_.moments_in_host && input.role == Role::moment;
    (input.role == Role::derived    ? plan_.derived_bytes
     : plan_.buffers.back().in_host ? plan_.host_bytes
     : state                        ? plan_.state_bytes
                                    : plan_.batch_bytes) += aligned(bytes);
    level.bind(input.value, buffer, true);
  }
  stage_host_state(level);
  compile_kernels(level);
  assign_results(level);
  plan_nodes(level);
  finish_host_state(level);
  finish_results(level);
  plan_.launches = std::move(level.launches);
  place_all();
}

// Offsets of the buffers of one space, in the arena or a thread group's memory. Returns how many bytes they take.
int64_t Planner::place(Space space, int base) {
  std::vector<Lifetime> blocks;
  std::vector<size_t> which;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    Buffer& buffer = plan_.buffers[i];
    if (buffer.space != space || buffer.base != base) continue;
    buffer.first = lifetimes_[i].first;
    buffer.last = lifetimes_[i].last;
    buffer.again = lifetimes_[i].again;
    blocks.push_back(lifetimes_[i]);
    which.push_back(i);
  }
  const auto* const overlapping = dynamic_cast<const OverlappingLaunches*>(&compiler_);
  const Placement placement =
      !options_.reuse_memory ? place_apart(blocks, options_.alignment)
      : overlapping != nullptr && options_.late_reuse && space == Space::arena
          ? place_with_late_reuse(blocks, options_.alignment, overlapping->small_value_bytes())
          : place_by_size(blocks, options_.alignment);
  for (size_t i = 0; i < which.size(); ++i) plan_.buffers[which[i]].offset = placement.offsets[i];
  return placement.total_bytes;
}

void Planner::place_all() {
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    Buffer& buffer = plan_.buffers[i];
    if (buffer.space == Space::result) {
      buffer.offset = plan_.result_bytes;
      plan_.result_bytes += aligned(buffer.bytes);
    } else if (buffer.thread_groups > 0) {
      buffer.stride =
          aligned_bytes(place(Space::thread_group, static_cast<int>(i)), options_.group_alignment);
      buffer.bytes = lifetimes_[i].bytes = buffer.thread_groups * buffer.stride;
    }
  }
  plan_.arena_bytes = place_with_host_copies();
  find_concurrent_launches(plan_);
}

}  // namespace fullbore
