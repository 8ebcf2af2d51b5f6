#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "../support/comparison.h"
#include "../support/gradcheck.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/attention/attention.h"
#include "fullbore/ops/packed_attention.h"
#include "kernel_runner.h"

/// Attention on the heads of one tensor, and its gradient, against their references, on every vector
/// unit of this processor.
namespace fullbore {
namespace {

using cpu::MatmulUnits;
using testing_support::compare;
using testing_support::expect;
using testing_support::Expected;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

struct Case {
  const char* why;
  int64_t batch, positions, heads, groups, width;
  bool causal = false, padded = false;  ///< padded and causal: pairs of texts too
  double dropout = 0;
};

const Case kCases[] = {
    {"a small language model: an item for each set of keys", 3, 70, 4, 4, 32, true},
    {"ranges of keys", 1, 300, 2, 2, 16, true},
    {"heads that share keys", 2, 40, 6, 2, 16, true},
    {"few positions, of which heads that share keys fill no block together", 2, 7, 6, 2, 16},
    {"an odd width", 1, 67, 2, 1, 33, true},
    {"wide heads", 1, 40, 1, 1, 256},
    {"padding", 2, 50, 2, 2, 8, false, true},
    {"dropout", 2, 67, 3, 3, 16, true, false, 0.25},
    {"one position", 3, 1, 2, 2, 4, true},
    {"two texts in a row, and padding", 3, 140, 3, 3, 16, true, true},
    {"few positions: operands and sums where they lie", 2, 9, 2, 2, 32},
    {"few positions, heads that share keys, dropout", 2, 13, 4, 2, 20, true, false, 0.25},
    {"few positions, of which some are padding", 2, 19, 2, 2, 32, false, true},
    {"as many as are used where they lie", 2, 32, 2, 2, 8, true},
    {"one more", 2, 33, 2, 2, 8, true},
};

class PackedCase {
 public:
  PackedCase(const Case& c, DType dtype) : case_(c) {
    const TensorType qkv{dtype, {c.batch, c.positions, c.heads + 2 * c.groups, c.width}};
    GraphBuilder builder;
    const Tensor x = input(builder, random_literal(qkv, 5, 0));
    AttentionOptions options{.causal = c.causal};
    if (c.padded) options.mask = input(builder, padding());
    if (c.dropout > 0) {
      options.dropout = c.dropout;
      options.random = {.seed = input(builder, Literal::scalar(DType::i64, 7)),
                        .step = input(builder, Literal::scalar(DType::i64, 1000)),
                        .site = 3};
    }
    builder.output("y", packed_attention(x, c.heads, options));
    forward_ = builder.take();
    expected_ = expect(forward_, forward_.nodes()[0], pointers(literals_));
    make_gradient();
  }

  std::string check(const MatmulUnits& units) const {
    const KernelRequest request(forward_, forward_.nodes()[0], 3);
    const KernelRequest gradient(gradient_, gradient_.nodes()[0], 3);
    const std::string problem =
        compare_all(*cpu::make_attention(request, units), forward_, pointers(literals_), expected_);
    return problem.empty() ? compare_all(*cpu::make_attention_gradient(gradient, units), gradient_,
                                         pointers(gradient_literals_), expected_gradient_)
                           : problem;
  }

 private:
  Tensor input(GraphBuilder& builder, Literal literal) {
    literal.round();
    literals_.push_back(std::move(literal));
    return builder.input(fmt::format("x{}", literals_.size()), Role::batch,
                         literals_.back().type());
  }

  Literal padding() const {
    const int64_t queries = case_.causal ? case_.positions : 1;
    std::vector<double> visible;
    for (int64_t b = 0; b < case_.batch; ++b)
      for (int64_t query = 0; query < queries; ++query)
        for (int64_t key = 0; key < case_.positions; ++key) {
          const int64_t second = case_.causal ? 50 + 20 * b : 0;
          const bool same = !case_.causal || (query < second) == (key < second);
          visible.push_back(same && key < case_.positions - 9 * b ? 1 : 0);
        }
    return Literal::of({DType::boolean, {case_.batch, 1, queries, case_.positions}}, visible);
  }

  // With the statistics that attention itself has.
  void make_gradient() {
    const Literal& y = expected_[0].value;
    Literal dy = random_literal({literals_[0].dtype(), y.shape()}, 9, 0);
    dy.round();
    Literal log_sum_exp = expected_[1].value;
    log_sum_exp.round();
    Literal delta({log_sum_exp.dtype(), {case_.batch, case_.positions, case_.heads}});
    for (int64_t i = 0; i < y.elements(); ++i)
      delta.reals()[static_cast<size_t>(i / case_.width)] += dy.at(i) * y.at(i);
    delta.round();
    gradient_literals_ = literals_;
    gradient_literals_.insert(gradient_literals_.begin() + 1, {dy, log_sum_exp, delta});
    std::vector<Value> values;
    for (const Literal& literal : gradient_literals_)
      values.push_back(
          gradient_.add_input(fmt::format("x{}", values.size()), Role::batch, literal.type()));
    gradient_.add_node(get_op("packed_attention_gradient"), values, forward_.nodes()[0].attributes);
    expected_gradient_ = expect(gradient_, gradient_.nodes()[0], pointers(gradient_literals_));
  }

  static std::vector<const Literal*> pointers(const std::vector<Literal>& literals) {
    std::vector<const Literal*> result;
    for (const Literal& literal : literals) result.push_back(&literal);
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

  const Case& case_;
  std::vector<Literal> literals_, gradient_literals_;
  Graph forward_, gradient_;
  std::vector<Expected> expected_, expected_gradient_;
};

class PackedAttention : public ::testing::TestWithParam<DType> {};

TEST_P(PackedAttention, AgreesWithTheReference) {
  std::vector<MatmulUnits> all_units;
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512})
    if (unit <= this_processor().vector_unit) all_units.push_back({unit, false});
  if (this_processor().avx512_bf16) all_units.push_back({VectorUnit::avx512, true});
  if (this_processor().amx_bf16) all_units.push_back(MatmulUnits::of_this_processor());
  for (const Case& c : kCases) {
    const PackedCase call(c, GetParam());
    for (const MatmulUnits& units : all_units) EXPECT_EQ(call.check(units), "") << c.why;
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, PackedAttention,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

}  // namespace
}  // namespace fullbore
