#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/passes/gemm/derived_weights.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/bad_step.h"
#include "fullbore/train/microbatches.h"
#include "fullbore/train/probed_graph.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

const char* text(Health health) { return health == Health::kNaN ? "NaN" : "an infinity"; }

/// Values of a graph and its loops that an output depends on.
class Ancestors {
 public:
  Ancestors(const ProbedLevel& top, int output) {
    if (output >= 0) mark(top, {top.graph->outputs()[static_cast<size_t>(output)].value});
  }
  bool contains(const ProbedLevel& level, Value value) const {
    return known_.contains({&level, value});
  }

 private:
  void mark(const ProbedLevel& level, const std::vector<Value>& from) {
    for (const Value value : from) known_.insert({&level, value});
    const std::vector<Node>& nodes = level.graph->nodes();
    for (size_t index = nodes.size(); index-- > 0;) {
      const Node& node = nodes[index];
      if (std::ranges::none_of(node.outputs, [&](Value each) { return contains(level, each); }))
        continue;
      const auto loop = level.loops.find(static_cast<int>(index));
      if (loop == level.loops.end()) {
        for (const Value operand : node.inputs) known_.insert({&level, operand});
        continue;
      }
      mark_loop(level, node, *loop->second);
    }
  }
  void mark_loop(const ProbedLevel& level, const Node& node, const ProbedLevel& body) {
    const LoopShape shape(node);
    const auto is_wanted = [&](size_t output) {
      const auto carried = static_cast<size_t>(shape.carried);
      return output >= node.outputs.size() || contains(level, node.outputs[output]) ||
             (output < carried && contains(body, body.graph->inputs()[1 + output].value));
    };
    // What is carried is wanted where the next iteration wants it.
    std::vector<Value> marked;
    for (bool grows = true; grows;) {
      std::vector<Value> outputs;
      for (size_t i = 0; i < body.graph->outputs().size(); ++i)
        if (is_wanted(i)) outputs.push_back(body.graph->outputs()[i].value);
      grows = outputs != marked;
      if (grows) mark(body, outputs);
      marked = std::move(outputs);
    }
    for (size_t i = 1; i < body.graph->inputs().size(); ++i)
      if (contains(body, body.graph->inputs()[i].value))
        known_.insert({&level, node.inputs[i - 1 + static_cast<size_t>(shape.first_carried())]});
  }

  std::set<std::pair<const ProbedLevel*, Value>> known_;
};

/// From the results that are not finite back to what made them so.
class Hunt {
 public:
  Hunt(const ProbedGraph& probed, const Program& program) : probed_(probed), program_(program) {}

  /// "" if there is nothing to be found.
  std::string run() {
    const Graph& graph = *probed_.top().graph;
    for (const bool all : {false, true}) {
      for (const Graph::Output& output : graph.outputs())
        if (all || output.name == "loss" || output.name == "gradient_norm")
          follow({&probed_.top(), {}, output.value});
      while (!open_.empty()) {
        const ProbedValue next = std::move(open_.back());
        open_.pop_back();
        visit(next);
      }
      if (first_) return describe();
    }
    return "";
  }

 private:
  using Order = std::vector<int64_t>;

  // A body's input is what was handed to it: the value of another iteration, or of the graph around.
  std::optional<ProbedValue> handed_over(const ProbedValue& value) const {
    const ProbedLevel& level = *value.level;
    const auto& inputs = level.graph->inputs();
    const auto at = std::ranges::find(inputs, value.value, &Graph::Input::value);
    const auto index = static_cast<size_t>(at - inputs.begin());
    if (index == 0) return std::nullopt;
    const LoopShape shape(level.loop());
    if (index <= static_cast<size_t>(shape.carried)) {
      ProbedValue before = value;
      before.value = level.graph->outputs()[index - 1].value;
      before.iterations.back() += shape.reverse ? 1 : -1;
      const int64_t iteration = before.iterations.back();
      if (iteration >= 0 && iteration < shape.iterations && probed_.was_executed(program_, before))
        return before;
    }
    ProbedValue outer{level.parent, value.iterations, {}};
    outer.iterations.pop_back();
    outer.value = level.loop().inputs[index - 1 + static_cast<size_t>(shape.first_carried())];
    return outer;
  }

  bool is_handed_over(const ProbedValue& value) const {
    return value.level->parent && value.level->graph->producer(value.value) < 0 &&
           value.level->probes[place(value.value)] < 0;
  }

  Health health(ProbedValue value) const {
    while (is_handed_over(value)) {
      std::optional<ProbedValue> source = handed_over(value);
      if (!source) return Health::kFinite;
      value = std::move(*source);
    }
    return probed_.health(program_, value);
  }

  void follow(const ProbedValue& value) {
    if (health(value) == Health::kFinite) return;
    if (seen_.insert({value.level, value.iterations, value.value}).second) open_.push_back(value);
  }

  void visit(const ProbedValue& value) {
    const ProbedLevel& level = *value.level;
    const int maker = level.graph->producer(value.value);
    if (maker < 0 && level.parent) {
      if (const auto source = handed_over(value)) follow(*source);
      return;
    }
    if (maker < 0) return suspect(value, {});
    const Node& node = level.graph->nodes()[static_cast<size_t>(maker)];
    const auto loop = level.loops.find(maker);
    if (loop != level.loops.end()) return visit_loop(value, node, *loop->second);
    Health worst = Health::kFinite;
    std::vector<ProbedValue> operands;
    for (const Value input : node.inputs) {
      operands.push_back({value.level, value.iterations, input});
      worst = std::max(worst, health(operands.back()));
    }
    if (health(value) > worst && !node.inputs.empty()) suspect(value, order(value, maker));
    // NaN comes of NaN where there is one: infinities beside it may be harmless.
    for (const ProbedValue& operand : operands)
      if (health(operand) == worst) follow(operand);
  }

  void visit_loop(const ProbedValue& value, const Node& node, const ProbedLevel& body) {
    const LoopShape shape(node);
    const auto output =
        static_cast<size_t>(std::ranges::find(node.outputs, value.value) - node.outputs.begin());
    if (output >= body.graph->outputs().size()) return;
    ProbedValue inner{&body, value.iterations, body.graph->outputs()[output].value};
    inner.iterations.push_back(0);
    for (int64_t i = shape.iterations - 1; i >= 0; --i) {  // the last one first
      inner.iterations.back() = shape.reverse ? shape.iterations - 1 - i : i;
      if (!probed_.was_executed(program_, inner)) continue;
      follow(inner);
      if (output < static_cast<size_t>(shape.carried)) return;
    }
    if (output < static_cast<size_t>(shape.carried))
      follow({value.level, value.iterations,
              node.inputs[output + static_cast<size_t>(shape.first_carried())]});
  }

  // When the node was executed, in the order of the step.
  Order order(const ProbedValue& value, int node) const {
    Order result = {node};
    const ProbedLevel* level = value.level;
    for (size_t i = value.iterations.size(); i-- > 0; level = level->parent) {
      const LoopShape shape(level->loop());
      const int64_t iteration = value.iterations[i];
      result.insert(result.begin(), shape.reverse ? shape.iterations - 1 - iteration : iteration);
      result.insert(result.begin(), level->node);
    }
    return result;
  }

  void suspect(const ProbedValue& value, Order when) {
    if (first_ && when >= when_) return;
    first_ = value;
    when_ = std::move(when);
  }

  std::string describe() const {
    const Graph& graph = *first_->level->graph;
    const char* const what = text(health(*first_));
    const Node* const node = graph.producer_node(first_->value);
    if (!node) return describe_input(what);
    std::string where;
    if (!node->scope.empty()) where += " in " + node->scope;
    if (!node->location.empty()) where += " (" + node->location + ")";
    std::string when;
    const Graph& step = *probed_.top().graph;
    const int loss = step.find_output("loss");
    if (loss >= 0 && !node->scope.starts_with("optimizer") &&
        !Ancestors(probed_.top(), loss).contains(*first_->level, first_->value))
      when += ", backward pass";
    when += describe_iterations();
    if (!when.empty()) where += when + ',';
    std::string line = print_node(graph, *node);
    line = line.substr(0, line.find('\n'));
    return fmt::format("{}{} made {} first: {}", node->op->name, where, what, line);
  }

  std::string describe_input(const char* what) const {
    const Graph& graph = *probed_.top().graph;
    const auto input = std::ranges::find(graph.inputs(), first_->value, &Graph::Input::value);
    const std::string type = graph.type(input->value).text();
    if (input->derived)
      return fmt::format("parameter '{}' {} held {} before the step, in the form that matmuls read",
                         input->derived->parameter, type, what);
    return fmt::format("{} '{}' {} held {} before the step", role_name(input->role), input->name,
                       type, what);
  }

  // Of a batch in parts each is one microbatch, whether side by side or one after another.
  std::string describe_iterations() const {
    std::string loops;
    int64_t microbatch = 0;
    int64_t microbatches = 1;
    const ProbedLevel* level = first_->level;
    std::vector<const ProbedLevel*> around;
    for (; level->parent; level = level->parent) around.insert(around.begin(), level);
    for (size_t i = 0; i < around.size(); ++i) {
      const int64_t count = around[i]->iterations();
      const int64_t iteration = first_->iterations[i];
      if (is_over_microbatches(around[i]->loop())) {
        microbatch = microbatch * count + iteration;
        microbatches *= count;
      } else {
        const std::string& line = around[i]->loop().location;
        loops += fmt::format(", iteration {} of {} of the loop{}", iteration + 1, count,
                             line.empty() ? "" : " at " + line);
      }
    }
    if (microbatches > 1)
      loops = fmt::format(", microbatch {} of {}", microbatch + 1, microbatches) + loops;
    return loops;
  }

  const ProbedGraph& probed_;
  const Program& program_;
  std::vector<ProbedValue> open_;
  std::set<std::tuple<const ProbedLevel*, std::vector<int64_t>, Value>> seen_;
  std::optional<ProbedValue> first_;
  Order when_;
};

std::string hunt(const Graph& graph, State& state, std::span<const void* const> batch,
                 const CompileOptions& options) {
  ProbedGraph probed(graph);
  const Program program = [&] {
    Program compiled = Program::compile(probed.take(), state, options);
    compiled.run(batch);
    return compiled;
  }();
  return Hunt(probed, program).run();
}

}  // namespace

std::string first_non_finite(const Graph& graph, State& state, std::span<const void* const> batch,
                             const CompileOptions& options) {
  const Graph as_run = run_passes(graph, compile_target(state.device(), options), options.passes);
  CompileOptions plain = options;
  plain.plan_folder.clear();
  plain.memory_bytes = 0;
  for (const Pass& pass : pipeline())
    if (pass.optional) plain.passes.disabled.insert(std::string(pass.name));
  const std::string found = hunt(with_members_apart(as_run), state, batch, plain);
  // Where members alone are finite, the kernel of them all may not be.
  return found.empty() ? hunt(as_run, state, batch, plain) : found;
}

}  // namespace fullbore
