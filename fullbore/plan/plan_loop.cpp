#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/plan/planner.h"

namespace fullbore {

// Is the carried value State that the body changes in place, and that nobody wants as it was? What the loop makes of it
// is the State's new value.
bool Planner::carries_state_in_place(const Level& level, int index, const LoopShape& shape,
                                     const Level& body, int carried) const {
  const Node& node = level.graph.nodes()[static_cast<size_t>(index)];
  const Value initial = node.inputs[static_cast<size_t>(shape.first_carried() + carried)];
  const Value made = node.outputs[static_cast<size_t>(carried)];
  const bool becomes_state = std::ranges::any_of(level.graph.outputs(), [&](const auto& output) {
    return output.updates >= 0 && level.root_of(output.value) == made &&
           level.graph.inputs()[static_cast<size_t>(output.updates)].value ==
               level.root_of(initial);
  });
  return becomes_state && level.last_read_of(initial) == index &&
         may_replace(body, body.graph.inputs()[static_cast<size_t>(1 + carried)].value,
                     body.graph.outputs()[static_cast<size_t>(carried)].value);
}

// Where a carried value lives during the loop and after it: in its initial value's bytes if the loop
// is their only and last reader, else in new ones that the initial value is copied to.
int Planner::loop_carried_buffer(Level& level, int index, const LoopShape& shape, const Level& body,
                                 int carried) {
  const Node& node = level.graph.nodes()[static_cast<size_t>(index)];
  const Value initial = node.inputs[static_cast<size_t>(shape.first_carried() + carried)];
  const int source = level.buffer_of(initial);
  const bool only_reader = std::count_if(node.inputs.begin(), node.inputs.end(), [&](Value input) {
                             return level.buffer_of(input) == source;
                           }) == 1;
  if (only_reader && carries_state_in_place(level, index, shape, body, carried)) return source;
  if (options_.reuse_memory && only_reader && level.last_read_of(initial) == index &&
      !level.fixed[static_cast<size_t>(level.root_of(initial).id)] &&
      plan_.buffers[static_cast<size_t>(source)].space == working_space())
    return source;
  const int buffer = new_buffer(working_space(), level.graph.type(initial).bytes(),
                                fmt::format("carried {} of loop", carried));
  level.launches.push_back(copy_launch(source, buffer));
  return buffer;
}

// Is the value what a loop of the body stacks? Such a stack is a row of this loop's, and is made there.
bool Planner::stacked_by_loop(const Level& level, Value value) const {
  const Value root = level.root_of(value);
  const int producer = level.graph.producer(root);
  if (producer < 0) return false;
  const Node& node = level.graph.nodes()[static_cast<size_t>(producer)];
  if (!is_loop(node)) return false;
  const LoopShape shape(node);
  const auto output =
      std::find(node.outputs.begin(), node.outputs.end(), root) - node.outputs.begin();
  return output >= shape.carried && output < shape.carried + shape.stacked;
}

// Decides how each output of the body reaches its place before the body is planned: made there if
// possible, else copied at the end of an iteration (see the end of plan_loop).
void Planner::plan_loop_outputs(Level& body, const LoopShape& shape, LoopPlan& loop,
                                const std::vector<int>& carried, const std::vector<int>& stacked) {
  const Graph& graph = body.graph;
  for (int c = 0; c < shape.carried; ++c) {
    const Value next = graph.outputs()[static_cast<size_t>(c)].value;
    const Value previous = graph.inputs()[static_cast<size_t>(1 + c)].value;
    if (!body.target.contains(body.root_of(next)) && may_replace(body, previous, next))
      body.target[body.root_of(next)] = carried[static_cast<size_t>(c)];
  }
  for (int s = 0; s < shape.stacked; ++s) {
    const Value row = graph.outputs()[static_cast<size_t>(shape.carried + s)].value;
    const int slice = new_slice(stacked[static_cast<size_t>(s)], graph.type(row).bytes(),
                                fmt::format("row of stacked {}", s));
    loop.slices.push_back(slice);
    if (options_.reuse_memory && !body.target.contains(body.root_of(row)) &&
        (made_by_kernel(body, row) || stacked_by_loop(body, row)))
      body.target[body.root_of(row)] = slice;
  }
}

// How the carried values that the body did not make in place come to be the next iteration's: those that it made in
// bytes of its own by exchanging these for the old ones' bytes. `first_of_body`: the first buffer that is the body's own.
void Planner::plan_carries(Level& body, const LoopShape& shape, LoopPlan& loop,
                           const std::vector<int>& carried, int first_of_body) {
  for (int c = 0; c < shape.carried; ++c) {
    int from = body.buffer_of(body.graph.outputs()[static_cast<size_t>(c)].value);
    const int to = carried[static_cast<size_t>(c)];
    if (from == to) continue;
    if (std::find(carried.begin(), carried.end(), from) != carried.end()) {
      // The new value is another carried one's: save it before that is replaced.
      const int kept = new_buffer(working_space(), plan_.buffers[static_cast<size_t>(from)].bytes,
                                  "exchanged carried value");
      body.launches.push_back(copy_launch(from, kept));
      from = kept;
    }
    const bool own =
        from >= first_of_body && plan_.buffers[static_cast<size_t>(from)].space == working_space();
    const bool taken = std::ranges::any_of(
        loop.carries, [&](const LoopPlan::Carry& other) { return other.from == from; });
    loop.carries.push_back({from, to, options_.reuse_memory && own && !taken});
  }
}

// Thread groups that make iterations side by side; 1 if that is not to be, or all are at work in a loop around this one.
int Planner::thread_group_count(const LoopShape& shape) const {
  if (!shape.parallel || memory_ >= 0) return 1;
  const int most = options_.thread_groups > 0 ? std::min(options_.thread_groups, options_.workers)
                                              : options_.workers;
  return static_cast<int>(std::clamp<int64_t>(shape.iterations, 1, most));
}

void Planner::plan_loop(Level& level, int index) {
  const Node& node = level.graph.nodes()[static_cast<size_t>(index)];
  const LoopShape shape(node);
  const Graph& graph = *node.body;
  auto loop = std::make_shared<LoopPlan>();
  loop->iterations = shape.iterations;
  loop->reverse = shape.reverse;

  const int thread_groups = thread_group_count(shape);
  if (thread_groups > 1) workers_ = (options_.workers + thread_groups - 1) / thread_groups;
  Level body(graph, &level, index);
  compile_kernels(body);  // which say what can be made in place

  std::vector<int> carried;
  for (int c = 0; c < shape.carried; ++c)
    carried.push_back(loop_carried_buffer(level, index, shape, body, c));
  const int start = clock_++;
  touch_inputs(level, node);
  if (shape.counted) loop->count = level.buffer_of(node.inputs[0]);
  std::vector<int> stacked;
  for (int s = 0; s < shape.stacked; ++s) {
    const Value output = node.outputs[static_cast<size_t>(shape.carried + s)];
    const auto target = level.target.find(output);
    stacked.push_back(target != level.target.end()
                          ? target->second
                          : new_buffer(working_space(), level.graph.type(output).bytes(),
                                       fmt::format("stacked {} of loop", s)));
    if (reads_rows_not_made(level.scope, index, shape.carried + s))
      loop->cleared.push_back(stacked.back());
  }
  if (shape.until) loop->executed = new_buffer(working_space(), 8, "iterations executed by loop");

  if (thread_groups > 1) {
    loop->memory = new_buffer(Space::arena, 0,
                              fmt::format("memory of {} thread groups of loop", thread_groups));
    plan_.buffers.back().thread_groups = thread_groups;
    memory_ = loop->memory;
  }
  loop->index = new_buffer(working_space(), 8, "index of loop");
  body.bind(graph.inputs()[0].value, loop->index, true);
  for (int c = 0; c < shape.carried; ++c)
    body.bind(graph.inputs()[static_cast<size_t>(1 + c)].value, carried[static_cast<size_t>(c)],
              true);
  for (int s = 0; s < shape.sliced; ++s) {
    const Value input = graph.inputs()[static_cast<size_t>(1 + shape.carried + s)].value;
    const Value operand = node.inputs[static_cast<size_t>(shape.first_sliced() + s)];
    const int slice = new_slice(level.buffer_of(operand), graph.type(input).bytes(),
                                fmt::format("row of sliced {}", s));
    loop->slices.push_back(slice);
    body.bind(input, slice, true);
  }
  for (int c = 0; c < shape.captured; ++c)
    body.bind(graph.inputs()[static_cast<size_t>(1 + shape.carried + shape.sliced + c)].value,
              level.buffer_of(node.inputs[static_cast<size_t>(shape.first_captured() + c)]), true);
  const size_t first_stacked_slice = loop->slices.size();
  const auto first_of_body = static_cast<int>(plan_.buffers.size());
  plan_loop_outputs(body, shape, *loop, carried, stacked);
  plan_nodes(body);

  for (int s = 0; s < shape.stacked; ++s) {
    const int from = body.buffer_of(graph.outputs()[static_cast<size_t>(shape.carried + s)].value);
    const int slice = loop->slices[first_stacked_slice + static_cast<size_t>(s)];
    if (from != slice) body.launches.push_back(copy_launch(from, slice));
  }
  if (shape.until) {
    loop->stop = body.buffer_of(graph.outputs().back().value);
    if (std::find(carried.begin(), carried.end(), loop->stop) != carried.end()) {
      // It is read when this iteration's carried values have been replaced.
      const int kept = new_buffer(working_space(), 1, "stop of loop");
      body.launches.push_back(copy_launch(loop->stop, kept));
      loop->stop = kept;
    }
  }
  plan_carries(body, shape, *loop, carried, first_of_body);

  // Everything that outlives an iteration is alive during the whole loop. (A body's constant or captured
  // value may be the source of a carry: touched here too.)
  const int end = clock_++;
  if (thread_groups > 1) {
    memory_ = -1;
    workers_ = options_.workers;
  }
  for (const LoopPlan::Carry& carry : loop->carries) {
    touch(carry.from, end);
    Lifetime& lifetime = lifetimes_[static_cast<size_t>(carry.from)];
    if (carry.exchanged) lifetime.first = std::min(lifetime.first, start);
  }
  for (int buffer : carried) touch(buffer, end);
  for (int buffer : stacked) touch(buffer, end);
  touch(loop->index, end);
  if (loop->stop >= 0) touch(loop->stop, end);
  if (loop->executed >= 0) touch(loop->executed, end);
  for (Value input : node.inputs) touch(level.buffer_of(input), end);
  FB_CHECK(start < end);

  for (int c = 0; c < shape.carried; ++c)
    level.bind(node.outputs[static_cast<size_t>(c)], carried[static_cast<size_t>(c)], false);
  for (int s = 0; s < shape.stacked; ++s) {
    const Value output = node.outputs[static_cast<size_t>(shape.carried + s)];
    level.bind(output, stacked[static_cast<size_t>(s)], level.target.contains(output));
  }
  if (shape.until) level.bind(node.outputs.back(), loop->executed, false);
  loop->body = std::move(body.launches);
  PlannedLaunch launch;
  launch.kind = PlannedLaunch::Kind::loop;
  launch.node = index;
  launch.loop = std::move(loop);
  level.launches.push_back(std::move(launch));
}

}  // namespace fullbore
