#include "fullbore/passes/gemm/weight_gradient_iterations.h"

#include <algorithm>
#include <set>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/canonicalize/simplify_rules.h"
#include "fullbore/passes/gemm/matmul_sums.h"

namespace fullbore {
namespace {

// An iteration adds its matmul to a sum that stays in a near cache; rows go to memory and come back. What a
// matmul of few rows loses is made up for up to about this share (bench/batch_weight_gradients.cpp).
constexpr int64_t kRowsPerSum = 16;

size_t place(Value value) { return static_cast<size_t>(value.id); }

Value root_of(const Graph& graph, Value value) {
  for (const Node* node = graph.producer_node(value); node && node->op->is(Tag::identity);
       node = graph.producer_node(value))
    value = node->inputs[0];
  return value;
}

/// A sum that the loop is not to carry any more.
struct IterationSum {
  size_t carried;
  std::vector<SummedMatmul> matmuls;
};

class IterationGathering {
 public:
  IterationGathering(GraphBuilder& outer, const Node& node, const std::vector<Tensor>& operands,
                     const Graph& body)
      : outer_(outer),
        node_(node),
        operands_(operands),
        body_(body),
        shape_(node.attributes, static_cast<int>(operands.size()), body),
        uses_(body.use_counts()),
        taken_(static_cast<size_t>(shape_.carried), false) {
    for (int i = 0; i < shape_.stacked; ++i)
      stacked_.push_back(root_of(body, body.outputs()[carried() + static_cast<size_t>(i)].value));
    for (Value row : stacked_) stacked_bytes_ += body.type(row).bytes();
    for (int i = 0; i < shape_.sliced; ++i)
      sliced_bytes_ += body.type(input(first_slice() + static_cast<size_t>(i))).bytes();
  }

  std::vector<Tensor> run() {
    if (shape_.iterations < 2) return {};
    // What is stacked for one sum may be there for another.
    for (bool found = true; found;) {
      found = false;
      for (size_t c = 0; c < carried(); ++c) found |= !taken_[c] && take(c);
    }
    if (sums_.empty()) return {};
    emit_loop();
    return results();
  }

 private:
  size_t carried() const { return static_cast<size_t>(shape_.carried); }
  size_t first_slice() const { return 1 + carried(); }
  size_t first_capture() const { return first_slice() + static_cast<size_t>(shape_.sliced); }
  Value input(size_t i) const { return body_.inputs()[i].value; }
  // The operand of the loop that feeds input `i` of the body.
  Tensor operand(size_t i) const {
    return operands_[i - 1 + static_cast<size_t>(shape_.first_carried())];
  }
  // The operand whose rows the value is, iteration by iteration: all of them, and zeros where no iteration was made.
  Tensor all_rows(Value root) const {
    for (size_t i = first_slice(); i < first_capture(); ++i)
      if (input(i) == root && (!may_skip_iterations() || is_zero_elsewhere(operand(i))))
        return operand(i);
    return {};
  }
  bool may_skip_iterations() const { return shape_.counted || shape_.until; }
  // Was it stacked by a loop that made the same iterations?
  bool is_zero_elsewhere(Tensor rows) const {
    if (!shape_.counted || shape_.until) return false;
    const Graph& graph = outer_.graph();
    const Value root = root_of(graph, rows.value());
    const Node* maker = graph.producer_node(root);
    if (!maker || !is_loop(*maker) || rows.type() != graph.type(root)) return false;
    const LoopShape made(*maker);
    const auto first = maker->outputs.begin() + made.carried;
    const bool is_stacked = std::find(first, first + made.stacked, root) != first + made.stacked;
    if (!is_stacked || made.iterations != shape_.iterations) return false;
    const Value count = operands_[0].value();
    return made.until ? maker->outputs.back() == count && !made.reverse
                      : made.counted && maker->inputs[0] == count;
  }

  // Is carried value `c` a sum of matmuls alone, that gains by being gathered?
  bool take(size_t c) {
    const Value previous = input(1 + c);
    const Value next = body_.outputs()[c].value;
    if (uses_[place(previous)] != 1 || uses_[place(next)] != 1) return false;
    const ProductSum sum = product_sum(body_, uses_, next);
    if (sum.matmuls.empty() || sum.others != std::vector<Value>{previous}) return false;
    std::vector<Value> rows;  // to be stacked in addition
    for (const SummedMatmul& matmul : sum.matmuls) {
      if (!contracts_rows(body_, matmul)) return false;
      // One matmul of all rows would take the time of all iterations that may be made, however few are.
      if (may_skip_iterations() && contracted_extent(body_, matmul) >= kRowsPerSum) return false;
      for (Value value : {matmul.a(), matmul.b()}) {
        const Value root = root_of(body_, value);
        const bool known = std::count(stacked_.begin(), stacked_.end(), root) +
                               std::count(rows.begin(), rows.end(), root) >
                           0;
        if (!known && !all_rows(root).valid()) rows.push_back(root);
      }
    }
    int64_t bytes = 0;
    for (Value row : rows) bytes += body_.type(row).bytes();
    const bool pays = kRowsPerSum * bytes <= body_.type(next).bytes();
    if (!pays || (bytes > 0 && stacked_bytes_ + bytes > sliced_bytes_)) return false;
    stacked_.insert(stacked_.end(), rows.begin(), rows.end());
    stacked_bytes_ += bytes;
    for (const Node* addition : sum.additions) vanishing_.insert(addition);
    for (const SummedMatmul& matmul : sum.matmuls) {
      vanishing_.insert(matmul.matmul);
      vanishing_.insert(matmul.steps.begin(), matmul.steps.end());
    }
    taken_[c] = true;
    sums_.push_back({c, sum.matmuls});
    return true;
  }

  // The loop without those sums, which stacks rows instead.
  void emit_loop() {
    GraphBuilder body(body_.name());
    std::vector<Tensor> values(static_cast<size_t>(body_.value_count()));
    std::vector<Tensor> operands(operands_.begin(), operands_.begin() + shape_.first_carried());
    const auto declare = [&](size_t i) {
      values[place(input(i))] =
          body.input(body_.inputs()[i].name, Role::local, body_.type(input(i)));
      if (i > 0) operands.push_back(operand(i));
    };
    declare(0);
    for (size_t c = 0; c < carried(); ++c)
      if (!taken_[c]) declare(1 + c);
    const size_t carries = operands.size() - static_cast<size_t>(shape_.first_carried());
    for (size_t i = first_slice(); i < body_.inputs().size(); ++i) declare(i);
    for (const Node& node : body_.nodes()) {
      if (vanishing_.contains(&node)) continue;
      std::vector<Tensor> inputs;
      for (Value value : node.inputs) inputs.push_back(values[place(value)]);
      const std::vector<Tensor> made = body.emit_like(node, inputs);
      for (size_t k = 0; k < made.size(); ++k) values[place(node.outputs[k])] = made[k];
    }
    emit_outputs(body, values);
    if (body.graph().outputs().empty()) return;  // all rows are there already
    Node changed = node_;
    changed.attributes.set("carried", static_cast<int64_t>(carries));
    changed.body = std::make_shared<const Graph>(body.take());
    made_ = outer_.emit_like(changed, operands);
  }

  void emit_outputs(GraphBuilder& body, const std::vector<Tensor>& values) const {
    const auto output = [&](size_t i) {
      body.output(body_.outputs()[i].name, values[place(body_.outputs()[i].value)]);
    };
    for (size_t c = 0; c < carried(); ++c)
      if (!taken_[c]) output(c);
    for (size_t s = 0; s < static_cast<size_t>(shape_.stacked); ++s) output(carried() + s);
    for (size_t s = static_cast<size_t>(shape_.stacked); s < stacked_.size(); ++s)
      body.output("rows", values[place(stacked_[s])]);
    if (shape_.until) output(body_.outputs().size() - 1);
  }

  // The new loop's results are: carried values that stay, stacked rows, executed iterations.
  std::vector<Tensor> results() {
    std::vector<Tensor> result(carried());
    for (size_t c = 0; c < carried(); ++c)
      if (!taken_[c]) result[c] = made_[first_row_++];
    for (const IterationSum& sum : sums_) {
      const Tensor initial = operand(1 + sum.carried);
      Tensor total = number_everywhere(initial) == 0.0 ? Tensor{} : initial;
      for (const SummedMatmul& matmul : sum.matmuls) {
        const Tensor term = matmul_over_all_iterations(matmul);
        const Origin origin(outer_, *matmul.matmul);
        total = total.valid() ? add(total, term) : term;
      }
      result[sum.carried] = total;
    }
    for (size_t s = 0; s < static_cast<size_t>(shape_.stacked); ++s)
      result.push_back(made_[first_row_ + s]);
    if (shape_.until) result.push_back(made_.back());
    return result;
  }

  // The value's rows of all iterations, one below the other: [iterations * k, extent].
  Tensor gathered_rows(Value value, int64_t k) {
    const Value root = root_of(body_, value);
    Tensor rows = all_rows(root);
    if (!rows.valid()) {
      const auto at = std::find(stacked_.begin(), stacked_.end(), root) - stacked_.begin();
      rows = made_[first_row_ + static_cast<size_t>(at)];
    }
    const TensorType& type = body_.type(value);
    return reshape(rows, {shape_.iterations * k, k == 1 ? type.elements() : type.shape[1]});
  }

  Tensor matmul_over_all_iterations(const SummedMatmul& matmul) {
    const Origin origin(outer_, *matmul.matmul);
    const int64_t k = contracted_extent(body_, matmul);
    const Tensor a = gathered_rows(matmul.a(), k);
    const Tensor b = gathered_rows(matmul.b(), k);
    return emit_matmul(matmul, a, b, true, false);
  }

  GraphBuilder& outer_;
  const Node& node_;
  const std::vector<Tensor>& operands_;
  const Graph& body_;
  const LoopShape shape_;
  const std::vector<int> uses_;
  std::vector<bool> taken_;  // per carried value: is it one of sums_?
  std::vector<IterationSum> sums_;
  std::vector<Value> stacked_;  // roots of what the loop stacks: as it was, then in addition
  int64_t stacked_bytes_ = 0;   // of an iteration
  int64_t sliced_bytes_ = 0;    // likewise
  std::set<const Node*> vanishing_;
  std::vector<Tensor> made_;  // results of the new loop
  size_t first_row_ = 0;      // which of them is the first stacked one
};

}  // namespace

std::vector<Tensor> gather_iterations(GraphBuilder& outer, const Node& node,
                                      const std::vector<Tensor>& operands, const Graph& body) {
  return IterationGathering(outer, node, operands, body).run();
}

}  // namespace fullbore
