#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "../support/comparison.h"
#include "../support/gradcheck.h"
#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"
#include "kernel_runner.h"
#include "tests/support/device.h"

/// Attention and its gradient against their references, on every vector unit of this processor.
namespace fullbore {
namespace {

using testing_support::cpu_device;

using cpu::MatmulUnits;
using testing_support::compare;
using testing_support::expect;
using testing_support::Expected;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

enum class Mask { none, padding, by_head, by_query, bias, branches, one_for_all };

struct Case {
  const char* why;
  int64_t batch, heads, groups, queries, keys, width;
  bool causal = false;
  Mask mask = Mask::none;
  double dropout = 0;
};

const Case kCases[] = {
    {"one head of a small language model", 1, 1, 1, 64, 64, 32, true},
    {"many heads: an item each of the gradient", 4, 4, 4, 19, 19, 16, true},
    {"many heads that share keys", 8, 4, 2, 33, 40, 8, true, Mask::padding},
    {"two ranges of keys", 1, 2, 1, 70, 300, 16},
    {"ranges, causal, with a cache", 1, 1, 1, 90, 330, 16, true},
    {"wide heads", 1, 1, 1, 40, 50, 256},
    {"an odd width", 1, 2, 2, 50, 67, 33, true},
    {"whole tiles of bf16 and what is behind them", 1, 2, 1, 75, 107, 64, true, Mask::by_query},
    {"the same with dropout", 2, 2, 2, 71, 71, 32, true, Mask::none, 0.25},
    {"heads share a block", 2, 12, 2, 7, 21, 16, true, Mask::by_query},
    {"decoding", 2, 4, 4, 1, 150, 64, false, Mask::padding},
    {"decoding, heads share keys", 1, 8, 2, 1, 77, 32, true},
    {"decoding with a bias", 1, 2, 2, 1, 130, 40, false, Mask::bias},
    {"decoding with dropout", 1, 4, 2, 1, 200, 16, false, Mask::by_head, 0.25},
    {"three causal queries, of which the first sees nothing", 2, 1, 1, 3, 2, 16, true},
    {"few queries in a chunk", 1, 2, 2, 3, 90, 24, true},
    {"the first queries see nothing", 1, 2, 2, 100, 30, 16, true},
    {"a mask for each query", 1, 2, 2, 81, 99, 16, true, Mask::by_query},
    {"a mask for each head", 2, 3, 1, 20, 130, 16, false, Mask::by_head},
    {"a bias", 1, 2, 2, 66, 71, 16, true, Mask::bias},
    {"dropout over several blocks", 1, 3, 1, 67, 97, 16, true, Mask::none, 0.25},
    {"dropout, a mask, shared blocks", 1, 4, 1, 20, 65, 16, false, Mask::by_query, 0.5},
    {"texts that begin alike", 2, 2, 2, 210, 210, 16, true, Mask::branches},
    {"the same, many heads", 2, 4, 4, 150, 150, 16, true, Mask::branches},
    {"the same, heads share keys", 3, 4, 2, 131, 131, 33, true, Mask::branches},
    {"the same, with dropout", 2, 3, 3, 150, 150, 16, true, Mask::branches, 0.25},
    {"the same, not causal", 1, 2, 2, 140, 140, 16, false, Mask::branches},
    {"the same texts in all rows", 2, 2, 2, 140, 140, 16, true, Mask::one_for_all},
};

Literal of_rows(const TensorType& type, const std::vector<double>& values) {
  Literal literal = Literal::of(type, values);
  literal.round();
  return literal;
}

/// The nodes of one case and what the oracle says of them.
class AttentionCase {
 public:
  AttentionCase(const Case& c, DType dtype) {
    const TensorType q{dtype, {c.batch, c.heads, c.queries, c.width}};
    const TensorType k{dtype, {c.batch, c.groups, c.keys, c.width}};
    GraphBuilder builder;
    const Tensor inputs[] = {input(builder, q), input(builder, k), input(builder, k)};
    AttentionOptions options{.causal = c.causal, .mask = mask_input(builder, c, dtype)};
    if (c.dropout > 0) {
      options.dropout = c.dropout;
      options.random = {.seed = input(builder, {DType::i64, {}}),
                        .step = input(builder, {DType::i64, {}}),
                        .site = 3};
    }
    const Tensor y = attention(inputs[0], inputs[1], inputs[2], options);
    builder.output("y", y);
    forward_ = builder.take();
    expected_ = expect(forward_, forward_.nodes()[0], operands());
    make_gradient(q);
  }

  std::string check(const MatmulUnits& units, bool row_invariant) const {
    const KernelRequest request(forward_, forward_.nodes()[0], 3, row_invariant);
    // What is dropped is no part of a chain of weights: with both, the rows' kernel is never made.
    const bool by_rows = !row_invariant || request.attribute<double>("dropout") == 0;
    if (const auto rows = by_rows ? cpu::make_attention_rows(request, units) : nullptr) {
      std::string problem = compare_all(*rows, forward_, operands(), expected_);
      if (!problem.empty()) return problem;
    }
    const auto kernel = cpu::make_attention(request, units);
    return compare_all(*kernel, forward_, operands(), expected_);
  }
  /// Both kernels, made at this processor's level and run when it is limited.
  std::string check_limited() const {
    const MatmulUnits units = MatmulUnits::of_this_processor();
    const KernelRequest forward(forward_, forward_.nodes()[0], 3);
    const KernelRequest gradient(gradient_, gradient_.nodes()[0], 3);
    const auto made = cpu::make_attention(forward, units);
    const auto made_gradient = cpu::make_attention_gradient(gradient, units);
    limit_processor("x86-64-v2", "test");
    std::string problem = compare_all(*made, forward_, operands(), expected_);
    problem += compare_all(*made_gradient, gradient_, gradient_operands(), expected_gradient_);
    limit_processor("auto", "test");
    return problem;
  }
  std::string check_gradient(const MatmulUnits& units) const {
    const KernelRequest request(gradient_, gradient_.nodes()[0], 3);
    const auto kernel = cpu::make_attention_gradient(request, units);
    return compare_all(*kernel, gradient_, gradient_operands(), expected_gradient_);
  }
  /// Would a result be found wrong if one of its elements were an eighth larger?
  bool notices_changes() const {
    for (const auto* expectations : {&expected_, &expected_gradient_})
      for (size_t o = 0; o < expectations->size(); ++o) {
        Literal changed = (*expectations)[o].value;
        changed.round();
        int64_t largest = 0;
        for (int64_t i = 0; i < changed.elements(); ++i)
          if (std::abs(changed.at(i)) > std::abs(changed.at(largest))) largest = i;
        changed.put(largest, changed.at(largest) * 1.125);
        if (compare((*expectations)[o], changed, o).empty()) return false;
      }
    return true;
  }

 private:
  Tensor input(GraphBuilder& builder, const TensorType& type) {
    literals_.push_back(random_literal(type, 5, literals_.size()));
    literals_.back().round();
    return builder.input(fmt::format("x{}", literals_.size()), Role::batch, type);
  }

  Tensor mask_input(GraphBuilder& builder, const Case& c, DType dtype) {
    switch (c.mask) {
      case Mask::none: return {};
      case Mask::bias: return input(builder, {dtype, {1, c.heads, c.queries, c.keys}});
      case Mask::padding: return truths(builder, {c.batch, 1, 1, c.keys});
      case Mask::by_head: return truths(builder, {1, c.heads, 1, c.keys});
      case Mask::by_query: return truths(builder, {c.batch, c.heads, c.queries, c.keys});
      case Mask::branches: return branches(builder, {c.batch, 1, c.queries, c.keys});
      case Mask::one_for_all: return branches(builder, {1, 1, c.queries, c.keys});
    }
    return {};
  }
  // Long stretches of hidden keys, so that whole tiles are.
  Tensor truths(GraphBuilder& builder, const Shape& shape) {
    const TensorType type{DType::boolean, shape};
    PhiloxStream draws(3);
    std::vector<double> values(static_cast<size_t>(shape.elements()));
    bool visible = true;
    for (double& value : values) {
      if (draws.below(20) == 0) visible = !visible;
      value = visible && draws.below(8) > 0 ? 1 : 0;
    }
    literals_.push_back(Literal::of(type, values));
    return builder.input("mask", Role::batch, type);
  }

  // Keys that all see, then stretches that see themselves, and none of the last keys: of each row its own.
  Tensor branches(GraphBuilder& builder, const Shape& shape) {
    std::vector<double> values;
    for (int64_t b = 0; b < shape[0]; ++b) {
      const int64_t shared = 21 + 40 * b, each = 37 + 6 * b, end = shape[3] - 5;
      const auto branch = [&](int64_t place) {
        return place < shared ? 0 : 1 + (place - shared) / each;
      };
      for (int64_t query = 0; query < shape[2]; ++query)
        for (int64_t key = 0; key < shape[3]; ++key)
          values.push_back(key < end && (branch(key) == 0 || branch(key) == branch(query)) ? 1 : 0);
    }
    literals_.push_back(Literal::of({DType::boolean, shape}, values));
    return builder.input("mask", Role::batch, literals_.back().type());
  }

  std::vector<const Literal*> operands() const {
    std::vector<const Literal*> result;
    for (const Literal& literal : literals_) result.push_back(&literal);
    return result;
  }

  // With the statistics that attention itself has.
  void make_gradient(const TensorType& q) {
    const Literal& y = expected_[0].value;
    const Literal& log_sum_exp = expected_[1].value;
    Literal dy = random_literal(q, 9, 0);
    dy.round();
    std::vector<double> delta(static_cast<size_t>(log_sum_exp.elements()));
    const int64_t width = q.shape[3];
    for (int64_t i = 0; i < y.elements(); ++i)
      delta[static_cast<size_t>(i / width)] += dy.at(i) * y.at(i);
    statistics_ = {std::move(dy), of_rows(log_sum_exp.type(), log_sum_exp.reals()),
                   of_rows(log_sum_exp.type(), delta)};
    std::vector<Value> values;
    for (const Literal* operand : gradient_operands())
      values.push_back(
          gradient_.add_input(fmt::format("x{}", values.size()), Role::batch, operand->type()));
    gradient_.add_node(get_op("attention_gradient"), values, forward_.nodes()[0].attributes);
    expected_gradient_ = expect(gradient_, gradient_.nodes()[0], gradient_operands());
  }
  std::vector<const Literal*> gradient_operands() const {
    std::vector<const Literal*> result = operands();
    result.insert(result.begin() + 3, {&statistics_[0], &statistics_[1], &statistics_[2]});
    return result;
  }

  static std::string compare_all(const Kernel& kernel, const Graph& graph,
                                 const std::vector<const Literal*>& operands,
                                 const std::vector<Expected>& expected) {
    std::vector<TensorType> types;
    for (Value output : graph.nodes()[0].outputs) types.push_back(graph.type(output));
    const RunResult result = run_kernel_in_all_ways(kernel, operands, types);
    std::string problem = result.problem;
    for (size_t o = 0; o < types.size() && problem.empty(); ++o)
      problem = compare(expected[o], Literal::from_bytes(types[o], result.outputs[o].data()), o);
    return problem.empty() ? "" : kernel.description() + ": " + problem;
  }

  std::vector<Literal> literals_;    // of attention
  std::vector<Literal> statistics_;  // dy, log_sum_exp, delta
  Graph forward_, gradient_;
  std::vector<Expected> expected_, expected_gradient_;
};

std::vector<MatmulUnits> units_of_this_processor() {
  std::vector<MatmulUnits> units;
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512})
    if (unit <= this_processor().vector_unit) units.push_back({unit, false});
  if (this_processor().avx512_bf16) units.push_back({VectorUnit::avx512, true});
  if (this_processor().amx_bf16) units.push_back(MatmulUnits::of_this_processor());
  return units;
}

class AttentionKernels : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionKernels, AgreeWithTheReference) {
  for (const Case& c : kCases) {
    const AttentionCase call(c, GetParam());
    for (const MatmulUnits& units : units_of_this_processor()) {
      for (const bool row_invariant : {false, true})
        EXPECT_EQ(call.check(units, row_invariant), "") << c.why;
      EXPECT_EQ(call.check_gradient(units), "") << c.why;
    }
    EXPECT_TRUE(call.notices_changes()) << c.why;
  }
}

// The point of it: neither a matrix of scores nor one of weights, in either direction.
// What was compiled before stays as it is.
TEST_P(AttentionKernels, StayWhenTheProcessorIsLimited) {
  if (this_processor().level == ProcessorLevel::baseline) GTEST_SKIP() << "nothing is less";
  for (const Case& c : kCases) {
    if (c.queries == 1 || c.dropout > 0) continue;
    EXPECT_EQ(AttentionCase(c, GetParam()).check_limited(), "") << c.why;
  }
}

TEST(AttentionPlan, KeepsNoMatrixOfQueriesByKeys) {
  constexpr int64_t kLength = 512;
  GraphBuilder builder;
  const TensorType type{DType::f32, {1, 2, kLength, 16}};
  std::vector<Tensor> x;
  for (const char* name : {"q", "k", "v", "dy"})
    x.push_back(builder.input(name, Role::batch, type));
  const Tensor y = attention(x[0], x[1], x[2], {.causal = true});
  const std::vector<Tensor> gradients =
      backward(builder, std::span(&y, 1), std::span(&x[3], 1), std::span(x).first(3));
  for (size_t i = 0; i < gradients.size(); ++i)
    builder.output(fmt::format("gradient{}", i), gradients[i]);
  const Graph graph = builder.take();
  State state(state_entries(graph), cpu_device(2));
  const Program program = Program::compile(graph, state, {});
  EXPECT_LT(program.plan().arena_bytes, kLength * kLength * dtype_bytes(DType::f32));
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernels,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& dtype) { return std::string(dtype_name(dtype.param)); });

}  // namespace
}  // namespace fullbore
