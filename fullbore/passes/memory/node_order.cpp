#include "fullbore/passes/memory/node_order.h"

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }
constexpr int64_t kAlignment = 64;

bool runs(const Node& node) { return !node.op->is(Tag::identity); }

}  // namespace

NodeOrder::NodeOrder(const Graph& graph, int carried)
    : graph_(graph), carried_(carried), inner_(graph.nodes().size(), 0) {
  find_roots();
  last_read_.assign(root_.size(), kNever);
  find_bytes();
  arrange();
}

void NodeOrder::find_roots() {
  root_.resize(static_cast<size_t>(graph_.value_count()));
  for (size_t i = 0; i < root_.size(); ++i) root_[i] = {static_cast<int32_t>(i)};
  for (const Node& node : graph_.nodes()) {
    if (!runs(node)) root_[place(node.outputs[0])] = root_of(node.inputs[0]);
    first_operand_.push_back(operands_.size());
    for (Value input : node.inputs) operands_.push_back(root_of(input));
  }
  first_operand_.push_back(operands_.size());
}

void NodeOrder::find_bytes() {
  bytes_[1].assign(root_.size(), 0);
  for (const Node& node : graph_.nodes())
    if (runs(node) && !node.op->is(Tag::source))
      for (Value output : node.outputs)
        bytes_[1][place(output)] =
            (graph_.type(output).bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

// Results, stacked rows, and what can take the place of the value that it replaces take no bytes.
void NodeOrder::find_bytes_in_place() {
  bytes_[0] = bytes_[1];
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const Graph::Output& output = graph_.outputs()[i];
    const Value root = root_of(output.value);
    const int replaced = static_cast<int>(i) < carried_ ? static_cast<int>(i) + 1 : output.updates;
    if (replaced < 0 ||
        life(graph_.inputs()[static_cast<size_t>(replaced)].value).last <= life(root).first)
      bytes_[0][place(root)] = 0;
  }
}

void NodeOrder::arrange() {
  executions_.clear();
  again_.assign(graph_.nodes().size(), false);
  for (std::vector<Life>& lives : lives_) lives.assign(root_.size(), {});
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!runs(node) || is_put_off(static_cast<int>(i))) continue;
    for (Value root : operands(static_cast<int>(i))) require_again(root, static_cast<int>(i));
    launch(static_cast<int>(i), false, static_cast<int>(i));
  }
  const auto end = static_cast<int>(executions_.size());
  for (const Graph::Output& output : graph_.outputs())
    lives_[0][place(root_of(output.value))].last = end;
  find_bytes_in_place();
  count_bytes();
}

bool NodeOrder::is_put_off(int node) const {
  const std::vector<Value>& outputs = graph_.nodes()[static_cast<size_t>(node)].outputs;
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(),
                                         [&](Value output) { return last_read(output) <= node; });
}

// Operands first. Not by recursion: a chain may be as long as the graph.
void NodeOrder::require_again(Value root, int at) {
  const auto enter = [&](Value value) {
    if (!reads_again(value, at)) return;
    const int node = graph_.producer(value);
    if (again_[static_cast<size_t>(node)]) return;
    again_[static_cast<size_t>(node)] = true;
    pending_.push_back({node, 0});
  };
  enter(root);
  while (!pending_.empty()) {
    Pending& last = pending_.back();
    const std::span<const Value> needed = operands(last.node);
    if (last.operand < needed.size()) {
      enter(needed[last.operand++]);
    } else {
      const int node = last.node;
      pending_.pop_back();
      launch(node, true, at);
    }
  }
}

void NodeOrder::launch(int node, bool again, int at) {
  const auto place_of_launch = static_cast<int>(executions_.size());
  for (Value root : operands(node))
    lives_[reads_again(root, at) ? 1 : 0][place(root)].last = place_of_launch;
  for (Value output : graph_.nodes()[static_cast<size_t>(node)].outputs)
    lives_[again ? 1 : 0][place(output)] = {place_of_launch, place_of_launch};
  executions_.push_back({node, again, at});
}

// What an elementwise kernel writes over an operand that it is the last to read.
int64_t NodeOrder::reused_bytes(const Execution& launch, int place_of_launch) const {
  const Node& node = graph_.nodes()[static_cast<size_t>(launch.node)];
  if (!node.op->is(Tag::elementwise) && (!node.body || is_loop(node))) return 0;
  int64_t most = 0;
  for (Value root : operands(launch.node)) {
    const size_t making = reads_again(root, launch.at) ? 1 : 0;
    if (lives_[making][place(root)].last != place_of_launch) continue;
    const int64_t bytes = bytes_[making][place(root)];
    for (Value output : node.outputs)
      if (bytes_[launch.again ? 1 : 0][place(output)] == bytes) most = std::max(most, bytes);
  }
  return most;
}

void NodeOrder::count_bytes() {
  std::vector<int64_t> change(executions_.size() + 1, 0);
  for (size_t making = 0; making < 2; ++making)
    for (size_t value = 0; value < root_.size(); ++value) {
      const Life& life = lives_[making][value];
      const int64_t bytes = bytes_[making][value];
      if (life.first < 0 || bytes == 0) continue;
      change[static_cast<size_t>(life.first)] += bytes;
      const auto end = static_cast<size_t>(life.last) + 1;
      if (end < change.size()) change[end] -= bytes;
    }
  alive_.assign(executions_.size(), 0);
  int64_t bytes = 0;
  for (size_t i = 0; i < executions_.size(); ++i) {
    bytes += change[i];
    const Execution& launch = executions_[i];
    alive_[i] = bytes + inner_[static_cast<size_t>(launch.node)] -
                reused_bytes(launch, static_cast<int>(i));
  }
}

size_t NodeOrder::peak() const {
  return static_cast<size_t>(std::max_element(alive_.begin(), alive_.end()) - alive_.begin());
}

}  // namespace fullbore
