#include "fullbore/ops/rules.h"
#include "fullbore/ops/scatter.h"

namespace fullbore {

Cost scatter_cost(const CostCall& call) {
  // The result is cleared, and each update reads and writes what it adds to.
  Cost cost = copy_cost(call);
  cost.bytes += 2 * static_cast<double>(call.inputs[0].bytes());
  if (is_floating(call.inputs[0].dtype))
    cost.flops = static_cast<double>(call.inputs[0].elements());
  return cost;
}

namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "updates", DTypeSet::numeric);
  require_dtype(call, 1, "indices", DTypeSet::integer);
  const int64_t rows = require_attribute<int64_t>(call, "rows");
  if (rows < 0) call.fail(fmt::format("cannot have {} rows", rows));
  const Shape& updates = call.inputs[0].shape;
  const Shape& indices = call.inputs[1].shape;
  if (updates.rank() < indices.rank() || updates.slice(0, indices.rank()) != indices)
    call.fail(fmt::format("{} must begin with the axes of {}",
                          operand_text("updates", call.inputs[0]),
                          operand_text("indices", call.inputs[1])));
  const Shape shape = updates.slice(indices.rank(), updates.rank()).inserted(0, rows);
  require_elements(call, shape);
  return {{call.inputs[0].dtype, shape}};
}

void reference(ReferenceCall& call) {
  const Literal& indices = *call.inputs[1];
  Literal& y = call.outputs[0];
  const AxisView rows(y.shape(), 0);
  ScatterSums sums(y);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t row = indices.integers()[static_cast<size_t>(i)];
    if (row < 0 || row >= rows.extent) continue;
    for (int64_t n = 0; n < rows.inner; ++n)
      sums.add(row * rows.inner + n, *call.inputs[0], i * rows.inner + n);
  }
  call.magnitudes = sums.finish();
}

std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  return {gather(call.cotangents[0], call.inputs[1]), {}};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, TensorType updates, TensorType indices, double high,
                     int64_t rows) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal(std::move(updates)),
                             SampleInput::integers(std::move(indices), 0, high)},
                  .attributes = {{"rows", rows}}};
  };
  return {
      of("an embedding's gradient", {DType::f32, {2, 3, 5}}, {DType::i32, {2, 3}}, 7, 7),
      of("many updates for few rows", {DType::f32, {129, 3}}, {DType::i64, {129}}, 2, 2),
      of("all updates for one row", {DType::f32, {65, 17}}, {DType::i32, {65}}, 1, 4),
      of("rows of one element", {DType::f32, {33}}, {DType::i32, {33}}, 9, 9),
      of("one index", {DType::f32, {4}}, {DType::i32, {}}, 3, 3),
      of("indices as bytes", {DType::f32, {7, 2, 3}}, {DType::u8, {7}}, 5, 5),
      of("more rows than updates", {DType::f32, {3, 2}}, {DType::i32, {3}}, 40, 40),
      of("no updates: zeros", {DType::f32, {0, 3}}, {DType::i32, {0}}, 4, 4),
      of("no rows", {DType::f32, {3, 2}}, {DType::i32, {3}}, 4, 0),
      of("rows of no elements", {DType::f32, {3, 0}}, {DType::i32, {3}}, 4, 4),
      {.why = "indices out of range write nothing",
       .inputs = {SampleInput::normal({DType::f32, {6, 2}}),
                  SampleInput::given({DType::i64, {6}}, {-1, 0, 2, 3, 0, 1e15}).constant()},
       .attributes = {{"rows", int64_t{3}}}},
      {.why = "the order of sums: large terms that cancel",
       .inputs = {SampleInput::given({DType::f32, {5}}, {1e4, 0.25, -1e4, 0.5, 3}),
                  SampleInput::given({DType::i32, {5}}, {1, 1, 1, 1, 0}).constant()},
       .attributes = {{"rows", int64_t{2}}}},
      {.why = "counts",
       .inputs = {SampleInput::integers({DType::i32, {40}}, 0, 2),
                  SampleInput::integers({DType::i32, {40}}, 0, 6)},
       .attributes = {{"rows", int64_t{6}}}},
  };
}

std::vector<ErrorSample> errors() {
  const Attributes rows{{"rows", int64_t{4}}};
  return {{"updates of other axes than the indices",
           {{DType::f32, {3, 2}}, {DType::i32, {4}}},
           rows,
           "updates f32[3,2] must begin with the axes of indices i32[4]"},
          {"indices that are no integers",
           {{DType::f32, {3, 2}}, {DType::f32, {3}}},
           rows,
           "needs integer indices, got f32[3]"},
          {"truth values",
           {{DType::boolean, {3}}, {DType::i32, {3}}},
           rows,
           "needs numeric updates, got bool[3]"},
          {"a negative number of rows",
           {{DType::f32, {3}}, {DType::i32, {3}}},
           {{"rows", int64_t{-1}}},
           "cannot have -1 rows"}};
}

const OpRegistrar scatter_add_op(OpDef{
    .name = "scatter_add",
    .summary = "adds rows into zeros by index",
    .infer = infer,
    .vjp = vjp,
    .cost = scatter_cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor scatter_add(Tensor updates, Tensor indices, int64_t rows, SourceLoc loc) {
  require_tensor("scatter_add", "updates", updates, loc);
  require_tensor("scatter_add", "indices", indices, loc);
  return apply("scatter_add", {updates, indices}, {{"rows", rows}}, loc);
}

}  // namespace fullbore
