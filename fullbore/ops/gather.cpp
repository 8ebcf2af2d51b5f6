#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_rank_at_least(call, 0, "x", 1);
  require_dtype(call, 1, "indices", DTypeSet::integer);
  const TensorType& x = call.inputs[0];
  Shape shape = call.inputs[1].shape;
  for (int axis = 1; axis < x.shape.rank(); ++axis)
    shape = shape.inserted(shape.rank(), x.shape[axis]);
  require_elements(call, shape);
  return {{x.dtype, shape}};
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const Literal& indices = *call.inputs[1];
  const AxisView rows(x.shape(), 0);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    const int64_t row = indices.integers()[static_cast<size_t>(i)];
    if (row < 0 || row >= rows.extent) continue;
    for (int64_t n = 0; n < rows.inner; ++n)
      copy_element(call.outputs[0], i * rows.inner + n, x, row * rows.inner + n);
  }
}

std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  return {scatter_add(call.cotangents[0], call.inputs[1], call.inputs[0].dim(0)), {}};
}

// Only the rows that are asked for are read.
Cost cost(const CostCall& call) {
  return {0, static_cast<double>(call.inputs[1].bytes()) +
                 2 * static_cast<double>(call.outputs[0].bytes())};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, TensorType x, TensorType indices, double low, double high) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal(std::move(x)),
                             SampleInput::integers(std::move(indices), low, high)},
                  .attributes = {}};
  };
  return {
      of("an embedding", {DType::f32, {11, 5}}, {DType::i32, {2, 3}}, 0, 11),
      of("rows one above 16 lanes", {DType::f32, {4, 17}}, {DType::i64, {33}}, 0, 4),
      of("rows of one element", {DType::f32, {9}}, {DType::i32, {4, 2}}, 0, 9),
      of("rows of rank 2, indices as bytes", {DType::f32, {6, 3, 5}}, {DType::u8, {7}}, 0, 6),
      of("one index", {DType::f32, {5, 3}}, {DType::i32, {}}, 0, 5),
      of("one row, read often", {DType::f32, {1, 3}}, {DType::i32, {129}}, 0, 1),
      of("no indices", {DType::f32, {5, 3}}, {DType::i32, {0}}, 0, 5),
      of("rows of no elements", {DType::f32, {5, 0}}, {DType::i32, {4}}, 0, 5),
      of("no rows: every index is out of range", {DType::f32, {0, 3}}, {DType::i32, {4}}, 0, 5),
      {.why = "indices out of range read zero",
       .inputs = {SampleInput::normal({DType::f32, {3, 4}}),
                  SampleInput::given({DType::i64, {6}}, {-1, 0, 2, 3, -4, 1e15}).constant()},
       .attributes = {}},
      {.why = "rows of integers",
       .inputs = {SampleInput::integers({DType::i64, {5, 2}}, -9e18, 9e18),
                  SampleInput::integers({DType::i32, {9}}, 0, 5)},
       .attributes = {}},
      {.why = "rows of truth values",
       .inputs = {SampleInput::integers({DType::boolean, {5, 2}}, 0, 2),
                  SampleInput::integers({DType::i32, {9}}, 0, 6)},
       .attributes = {}},
  };
}

std::vector<ErrorSample> errors() {
  return {{"indices that are no integers",
           {{DType::f32, {4, 2}}, {DType::f32, {3}}},
           {},
           "needs integer indices, got f32[3]"},
          {"rows of a scalar",
           {{DType::f32, {}}, {DType::i32, {3}}},
           {},
           "needs x of rank 1 or more, got f32[]"},
          {"no indices", {{DType::f32, {4, 2}}}, {}, "needs 2 operands, got 1"}};
}

const OpRegistrar gather_op(OpDef{
    .name = "gather",
    .summary = "rows of x by index",
    .tags = Tag::movement,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor gather(Tensor x, Tensor indices, SourceLoc loc) {
  require_tensor("gather", "x", x, loc);
  require_tensor("gather", "indices", indices, loc);
  return apply("gather", {x, indices}, {}, loc);
}

}  // namespace fullbore
