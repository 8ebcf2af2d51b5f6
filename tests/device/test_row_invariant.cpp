// engine.row_invariant, op by op: the first row of a call has the same bits alone as among others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::run_graph;

/// One node on its own, with values for its inputs.
struct Call {
  Graph graph;
  std::vector<Literal> inputs;
};

// Rows [0, count) of a literal, whose own are taken again and again.
Literal rows_of(const Literal& x, int64_t count) {
  Literal rows({x.dtype(), x.shape().with(0, count)});
  const int64_t each = x.elements() / x.shape()[0];
  for (int64_t i = 0; i < rows.elements(); ++i) {
    const int64_t from = i / each % x.shape()[0] * each + i % each;
    if (rows.floating())
      rows.reals()[static_cast<size_t>(i)] = x.reals()[static_cast<size_t>(from)];
    else
      rows.integers()[static_cast<size_t>(i)] = x.integers()[static_cast<size_t>(from)];
  }
  return rows;
}

// The call on so many rows, where what has the result's leading extent has rows; nothing if the op refuses.
std::optional<Call> with_rows(const MaterialisedSample& sample, int64_t count) {
  const Node& node = sample.graph.nodes()[0];
  const Shape& result = sample.graph.type(node.outputs[0]).shape;
  if (result.rank() == 0 || result[0] == 0) return std::nullopt;
  Call call{Graph("rows"), {}};
  std::vector<Value> operands;
  std::vector<TensorType> types;
  bool any = false;
  for (const Literal& x : sample.inputs) {
    const bool has_rows = x.shape().rank() > 0 && x.shape()[0] == result[0];
    any |= has_rows;
    call.inputs.push_back(has_rows ? rows_of(x, count) : x);
    types.push_back(call.inputs.back().type());
    operands.push_back(
        call.graph.add_input(fmt::format("x{}", operands.size()), Role::batch, types.back()));
  }
  if (!any) return std::nullopt;
  try {
    if (node.op->infer({*node.op, types, node.attributes, nullptr, {}})[0].shape[0] != count)
      return std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
  const Node& made = call.graph.add_node_like(node, *node.op, operands, node.attributes, node.body);
  call.graph.add_output("y", made.outputs[0], -1);
  return call;
}

// The first rows, if they are equal.
std::string first_row_difference(const Literal& one, const Literal& many) {
  for (int64_t i = 0; i < one.elements(); ++i) {
    const double a = one.at(i), b = many.at(i);
    if (a != b && !(std::isnan(a) && std::isnan(b)))
      return fmt::format("element {} is {} alone and {} among others", i, a, b);
  }
  return "";
}

// Rows of which other kernels are in charge than of one: dot products, tiles, tiles whose operand is copied.
constexpr int64_t kMany[] = {3, 40, 200};

class RowInvariantOps : public testing::Test {
 protected:
  // Is each row the op's own affair, by its definition?
  static bool is_row_wise(const Call& one, const Call& many) {
    const Literal alone = interpret(one.graph, one.inputs)[0];
    return first_row_difference(alone, interpret(many.graph, many.inputs)[0]).empty();
  }

  // How many samples were looked at.
  int check(const OpDef& op) {
    int checked = 0;
    for (const Sample& sample : op.samples()) {
      const MaterialisedSample made = materialise(op, sample, DType::f32, 5);
      const std::optional<Call> one = with_rows(made, 1);
      const std::optional<Call> few = with_rows(made, kMany[0]);
      if (!one || !few || !is_row_wise(*one, *few)) continue;
      ++checked;
      const Literal alone = run_graph(one->graph, one->inputs, device_, options_)[0];
      for (const int64_t count : kMany) {
        const Call many = *with_rows(made, count);
        EXPECT_EQ(first_row_difference(
                      alone, run_graph(many.graph, many.inputs, device_, options_)[0]),
                  "")
            << op.name << ", " << sample.why << ", " << count << " rows";
      }
    }
    return checked;
  }

  const std::shared_ptr<Device> device_ = cpu_device(2);
  CompileOptions options_{.row_invariant = true};
};

TEST_F(RowInvariantOps, FirstRowsAreTheSameAloneAndAmongOthers) {
  std::set<std::string_view> checked;
  for (const OpDef* op : all_ops()) {
    const bool sums = op->is(Tag::reduction) || op->is(Tag::contraction) || op->is(Tag::composite);
    if (!sums || op->is(Tag::region) || op->name.starts_with("recurrence")) continue;
    if (check(*op) > 0) checked.insert(op->name);
  }
  std::set<std::string_view> missing = {
      "matmul",      "matmul_add",   "prepacked_matmul", "softmax",          "log_softmax",
      "log_sum_exp", "cross_entropy", "reduce_sum",       "attention",        "packed_attention",
      "layer_norm",  "rms_norm",      "quantized_linear", "gelu"};
  for (const std::string_view op : checked) missing.erase(op);
  EXPECT_THAT(missing, testing::IsEmpty());
}

}  // namespace
}  // namespace fullbore
