#include "tests/support/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "tests/support/random_choices.h"

namespace fullbore {
namespace {

constexpr double kLargest = 1e4;

size_t place(Value value) { return static_cast<size_t>(value.id); }

bool is_moderate(const Literal& literal) {
  return std::all_of(literal.reals().begin(), literal.reals().end(), [](double value) {
    return std::isfinite(value) && std::abs(value) <= kLargest;
  });
}

/// The graph under construction beside the values that it has on its inputs.
class Maker {
 public:
  Maker(uint64_t seed, const RandomGraphOptions& options)
      : options_(options),
        draws_(seed, 2718),
        builder_("random"),
        bench_{builder_, draws_, options_,
               [this](Literal values) { return input(std::move(values)); }} {}

  RandomGraph run() {
    for (int i = 0; i < 2; ++i) bench_.values.push_back(bench_.normal_input(bench_.shape(3)));
    state_.push_back(bench_.values[0]);
    for (int i = 0; i < options_.choices; ++i) choose();
    return finish();
  }

 private:
  Tensor input(Literal values) {
    const std::string name = fmt::format("x{}", inputs_.size());
    const Role role = inputs_.empty() ? Role::parameter : Role::batch;
    const Tensor tensor = builder_.input(name, role, values.type());
    literals_.resize(static_cast<size_t>(builder_.graph().value_count()));
    literals_[place(tensor.value())] = values;
    inputs_.push_back(std::move(values));
    return tensor;
  }

  void choose() {
    static const std::vector<Choice> choices = {
        call_by_sample,   call_by_sample,   call_by_sample,    call_elementwise,
        call_elementwise, call_elementwise, move_elements,     move_elements,
        reduce_elements,  reduce_elements,  multiply_matrices, add_depth,
        add_constant,     repeat_node,      run_loop,          differentiate};
    const std::vector<Tensor> results = bench_.one_of(choices)(bench_);
    if (!evaluate()) return;
    for (Tensor x : results)
      if (x.type().elements() <= options_.most_elements) bench_.values.push_back(x);
  }

  // Evaluates what was added; strikes all of it out if a value is not moderate.
  bool evaluate() {
    const Graph& graph = builder_.graph();
    literals_.resize(static_cast<size_t>(graph.value_count()));
    const size_t first = struck_out_.size();
    struck_out_.resize(graph.nodes().size(), false);
    bool moderate = true;
    for (size_t i = first; i < graph.nodes().size() && moderate; ++i) {
      const Node& node = graph.nodes()[i];
      std::vector<const Literal*> operands;
      for (Value value : node.inputs) operands.push_back(&literals_[place(value)]);
      std::vector<TensorType> types;
      for (Value value : node.outputs) types.push_back(graph.type(value));
      std::vector<Literal> results = interpret_node(node, types, operands);
      for (size_t k = 0; k < results.size(); ++k) {
        moderate = moderate && is_moderate(results[k]);
        literals_[place(node.outputs[k])] = std::move(results[k]);
      }
    }
    if (!moderate)
      std::fill(struck_out_.begin() + static_cast<int64_t>(first), struck_out_.end(), true);
    return moderate;
  }

  // Copies what was not struck out, unused nodes included, and chooses outputs.
  RandomGraph finish() {
    std::vector<Tensor> results;
    for (int64_t i = 0; i < 1 + bench_.below(3); ++i)
      results.push_back(*bench_.pick([](Tensor) { return true; }));
    results.push_back(bench_.values.back());
    Tensor update;
    if (bench_.chance(0.5)) {
      const auto value = bench_.pick(
          [&](Tensor x) { return x.dtype() == options_.dtype && x.type().elements() > 0; });
      if (value) update = adapt(*value, state_[0].shape());
      if (!evaluate()) update = {};
    }
    const Graph& from = builder_.graph();
    RandomGraph result{Graph("random"), std::move(inputs_)};
    std::vector<Value> values(static_cast<size_t>(from.value_count()));
    for (const Graph::Input& each : from.inputs())
      values[place(each.value)] = result.graph.add_input_like(each, from.type(each.value));
    for (size_t i = 0; i < from.nodes().size(); ++i) {
      if (struck_out_[i]) continue;
      const Node& node = from.nodes()[i];
      std::vector<Value> operands;
      for (Value value : node.inputs) operands.push_back(values[place(value)]);
      const Node& copy = result.graph.add_node_like(node, *node.op, std::move(operands),
                                                    node.attributes, node.body);
      for (size_t k = 0; k < node.outputs.size(); ++k)
        values[place(node.outputs[k])] = copy.outputs[k];
    }
    for (size_t i = 0; i < results.size(); ++i)
      result.graph.add_output(fmt::format("y{}", i), values[place(results[i].value())]);
    if (update.valid()) result.graph.add_output("x0", values[place(update.value())], 0);
    return result;
  }

  const RandomGraphOptions options_;
  PhiloxStream draws_;
  GraphBuilder builder_;
  Workbench bench_;
  std::vector<Tensor> state_;
  std::vector<Literal> inputs_;
  std::vector<Literal> literals_;  // per value
  std::vector<bool> struck_out_;   // per node
};

double environment(const char* name, double fallback) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : fallback;
}

}  // namespace

RandomGraph random_graph(uint64_t seed, const RandomGraphOptions& options) {
  return Maker(seed, options).run();
}

int fuzz(int graphs, const std::function<bool(uint64_t)>& check) {
  const auto first = static_cast<uint64_t>(environment("FB_FUZZ_SEED", 1));
  const auto most = static_cast<int>(environment("FB_FUZZ_GRAPHS", graphs));
  const double limit = environment("FB_FUZZ_SECONDS", 0);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0;; ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (limit > 0 ? spent.count() >= limit : i >= most) return i;
    if (!check(first + static_cast<uint64_t>(i))) return i + 1;
  }
}

}  // namespace fullbore
