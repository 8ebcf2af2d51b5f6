#include <algorithm>

#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/scatter.h"

namespace fullbore {
namespace {

const TensorType kCount{DType::i64, {}};

void require_table(const OpCall& call, size_t input, std::string_view name) {
  require_rank(call, input, name, 2);
  if (call.inputs[input].dtype != DType::i32)
    call.fail(fmt::format("needs {} of i32, got {}", name, call.inputs[input].text()));
}

std::vector<TensorType> infer(const OpCall& call) {
  if (call.inputs.size() == 4)
    call.fail("needs count and inverse_count or neither, got one of them");
  require_inputs(call, 3, 5);
  require_rank_at_least(call, 0, "x", 1);
  require_table(call, 1, "indices");
  require_table(call, 2, "inverse");
  const TensorType& x = call.inputs[0];
  const TensorType& indices = call.inputs[1];
  const TensorType& inverse = call.inputs[2];
  if (inverse.shape[0] != x.shape[0])
    call.fail(fmt::format("{} must have a row for each of {}", operand_text("inverse", inverse),
                          operand_text("x", x)));
  if (indices.shape[1] != 1 && x.dtype == DType::boolean)
    call.fail(fmt::format("truth values have no sum: {} needs one index a row, not {}",
                          operand_text("x", x), operand_text("indices", indices)));
  for (size_t i = 3; i < call.inputs.size(); ++i) {
    const std::string_view name = i == 3 ? "count" : "inverse_count";
    OperandNames::note(name, call.inputs[i]);
    if (call.inputs[i] != kCount)
      call.fail(fmt::format("needs {} i64[], got {}", name, call.inputs[i].text()));
  }
  Shape shape = x.shape;
  shape[0] = indices.shape[0];
  require_elements(call, shape);
  return {{x.dtype, shape}};
}

// Rows of operand 0 that may be read, or of the result that are made.
int64_t bounded(const ReferenceCall& call, size_t count, int64_t rows) {
  if (call.inputs.size() <= count) return rows;
  return std::clamp<int64_t>(call.inputs[count]->integers()[0], 0, rows);
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const Literal& indices = *call.inputs[1];
  Literal& y = call.outputs[0];
  const AxisView from(x.shape(), 0);
  const int64_t most = indices.shape()[1];
  const int64_t made = bounded(call, 3, y.shape()[0]), there = bounded(call, 4, from.extent);
  ScatterSums sums(y);
  for (int64_t r = 0; r < made; ++r)
    for (int64_t k = 0; k < most; ++k) {
      const int64_t row = indices.integers()[static_cast<size_t>(r * most + k)];
      if (row < 0 || row >= there) continue;
      for (int64_t n = 0; n < from.inner; ++n)
        if (most == 1)
          copy_element(y, r * from.inner + n, x, row * from.inner + n);
        else
          sums.add(r * from.inner + n, x, row * from.inner + n);
    }
  // Undefined rows are made to show wherever they are read.
  for (int64_t i = made * from.inner; y.floating() && i < y.elements(); ++i) y.put(i, std::nan(""));
  if (most != 1) call.magnitudes = sums.finish();
}

std::vector<Tensor> vjp(const VjpCall& call) {
  std::vector<Tensor> cotangents(call.inputs.size());
  if (!call.wanted[0]) return cotangents;
  const bool counted = call.inputs.size() > 3;
  cotangents[0] = gather_sum(
      call.cotangents[0], call.inputs[2], call.inputs[1],
      counted ? GatherSumCounts{call.inputs[4], call.inputs[3]} : GatherSumCounts{}, call.loc);
  return cotangents;
}

// Every row that is asked for is read, the inverse is not.
Cost cost(const CostCall& call) {
  const TensorType& indices = call.inputs[1];
  const auto rows = static_cast<double>(indices.shape[1]);
  const auto bytes = static_cast<double>(call.outputs[0].bytes());
  Cost cost{0, static_cast<double>(indices.bytes()) + bytes * (rows + 1)};
  if (is_floating(call.outputs[0].dtype))
    cost.flops = std::max(0.0, rows - 1) * static_cast<double>(call.outputs[0].elements());
  return cost;
}

// Indices that pass a few of their rows over, and their inverse, which is as wide as it has to be.
Sample sample(std::string why, SampleInput x, int64_t rows, int64_t most, int64_t stride,
              bool counted = false) {
  const int64_t from = x.type.shape[0];
  std::vector<double> indices;
  std::vector<std::vector<double>> readers(static_cast<size_t>(from));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < most; ++k) {
      const int64_t row = (r * stride + k * 3) % (from + 1) - 1;
      indices.push_back(static_cast<double>(row));
      if (row >= 0) readers[static_cast<size_t>(row)].push_back(static_cast<double>(r));
    }
  size_t widest = 0;
  for (const auto& each : readers) widest = std::max(widest, each.size());
  std::vector<double> inverse;
  for (auto& each : readers) {
    each.resize(widest, -1);
    inverse.insert(inverse.end(), each.begin(), each.end());
  }
  std::vector<SampleInput> inputs = {
      std::move(x), SampleInput::given({DType::i32, {rows, most}}, indices).constant(),
      SampleInput::given({DType::i32, {from, static_cast<int64_t>(widest)}}, inverse).constant()};
  if (counted)
    for (const int64_t count : {rows, from})
      inputs.push_back(SampleInput::given(kCount, {static_cast<double>(count)}).constant());
  return {.why = std::move(why), .inputs = std::move(inputs), .attributes = {}};
}

std::vector<Sample> samples() {
  const auto normal = [](Shape shape) {
    return SampleInput::normal({DType::f32, std::move(shape)});
  };
  std::vector<Sample> all = {
      sample("a compaction", normal({7, 5}), 7, 1, 2),
      sample("a compaction with counts", normal({7, 5}), 7, 1, 2, true),
      sample("sums of three rows", normal({6, 17}), 5, 3, 1),
      sample("sums of three rows with counts", normal({6, 17}), 5, 3, 1, true),
      sample("rows of one element", normal({33}), 40, 2, 5),
      sample("rows of rank 2", normal({5, 2, 3}), 4, 2, 1),
      sample("one row, read often", normal({1, 3}), 65, 1, 1),
      sample("many rows of more than one item", normal({300, 65}), 280, 2, 7),
      sample("no rows of x", normal({0, 3}), 4, 1, 1),
      sample("no rows of y", normal({4, 3}), 0, 2, 1),
      sample("no indices: zeros", normal({4, 3}), 3, 0, 1),
      sample("rows of no elements", normal({4, 0}), 3, 2, 1),
      sample("integers", SampleInput::integers({DType::i64, {5, 2}}, -9e18, 9e18), 6, 1, 2),
      sample("integers wrap around", SampleInput::integers({DType::i32, {5, 2}}, -2e9, 2e9), 6, 4,
             1),
      sample("truth values", SampleInput::integers({DType::boolean, {5, 2}}, 0, 2), 6, 1, 2)};
  all.push_back(
      {.why = "the order of sums: large terms that cancel",
       .inputs = {SampleInput::given({DType::f32, {4}}, {1e4, 0.25, -1e4, 0.5}),
                  SampleInput::given({DType::i32, {2, 4}}, {0, 1, 2, 3, 3, -1, 1, 9}).constant(),
                  SampleInput::given({DType::i32, {4, 2}}, {0, -1, 0, 1, 0, -1, 0, 1}).constant()},
       .attributes = {}});
  return all;
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {4, 2}}, indices{DType::i32, {3, 1}}, inverse{DType::i32, {4, 2}};
  return {
      {"rows of a scalar",
       {{DType::f32, {}}, indices, inverse},
       {},
       "needs x of rank 1 or more, got f32[]"},
      {"indices without a second axis",
       {x, {DType::i32, {3}}, inverse},
       {},
       "needs indices of rank 2, got i32[3]"},
      {"indices of another dtype",
       {x, {DType::i64, {3, 1}}, inverse},
       {},
       "needs indices of i32, got i64[3,1]"},
      {"an inverse of other rows than x",
       {x, indices, {DType::i32, {3, 2}}},
       {},
       "inverse i32[3,2] must have a row for each of x f32[4,2]"},
      {"a sum of truth values",
       {{DType::boolean, {4}}, {DType::i32, {3, 2}}, inverse},
       {},
       "truth values have no sum"},
      {"one count", {x, indices, inverse, kCount}, {}, "needs count and inverse_count or neither"},
      {"a count that is no scalar",
       {x, indices, inverse, {DType::i64, {1}}, kCount},
       {},
       "needs count i64[], got i64[1]"},
      {"a narrow inverse_count",
       {x, indices, inverse, kCount, {DType::i32, {}}},
       {},
       "needs inverse_count i64[], got i32[]"},
      {"no inverse", {x, indices}, {}, "needs 3 to 5 operands, got 2"}};
}

const OpRegistrar gather_sum_op(OpDef{
    .name = "gather_sum",
    .summary = "ordered sums of rows by index, with the inverse for the gradient",
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor gather_sum(Tensor x, Tensor indices, Tensor inverse, GatherSumCounts counts, SourceLoc loc) {
  require_tensor("gather_sum", "x", x, loc);
  require_tensor("gather_sum", "indices", indices, loc);
  require_tensor("gather_sum", "inverse", inverse, loc);
  std::vector<Tensor> operands = {x, indices, inverse};
  for (const Tensor& count : {counts.count, counts.inverse_count})
    if (count.valid()) operands.push_back(count);
  return apply_all("gather_sum", operands, {}, loc)[0];
}

}  // namespace fullbore
