#include "fullbore/passes/support/evaluate.h"

#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

void evaluate_elementwise(ScalarOp op, const std::vector<const Literal*>& operands,
                          Literal& result) {
  // The last operand tells real from integer arithmetic: select's first is boolean.
  const Literal& last = *operands.back();
  for (int64_t i = 0; i < result.elements(); ++i) {
    double reals[3] = {};
    int64_t integers[3] = {};
    for (size_t k = 0; k < operands.size(); ++k) {
      reals[k] = operands[k]->at(i);
      if (!operands[k]->floating()) integers[k] = operands[k]->integers()[static_cast<size_t>(i)];
    }
    if (last.floating())
      result.put(i, evaluate_real(op, reals[0], reals[1], reals[2]));
    else
      result.integers()[static_cast<size_t>(i)] =
          evaluate_integer(op, last.dtype(), integers[0], integers[1], integers[2]);
  }
}

}  // namespace

std::optional<std::vector<Literal>> evaluate(const Graph& graph, const Node& node,
                                             const std::vector<const Literal*>& operands) {
  const OpDef& op = *node.op;
  if (node.body || op.decompose) return std::nullopt;
  std::vector<Literal> results;
  for (Value output : node.outputs) results.emplace_back(graph.type(output));
  if (op.reference) {
    ReferenceCall call{operands, std::move(results), node.attributes, nullptr, {}};
    op.reference(call);
    results = std::move(call.outputs);
  } else if (op.is(Tag::elementwise) && !operands.empty()) {
    evaluate_elementwise(op.scalar, operands, results[0]);
  } else {
    return std::nullopt;
  }
  for (Literal& result : results) result.round();
  return results;
}

}  // namespace fullbore
