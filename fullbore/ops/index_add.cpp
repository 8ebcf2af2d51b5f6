#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

/// Rows that are added by index to what there is already. Made by passes (scatter_accumulation), not by models: where a
/// device has the kernel, rows that no index names are neither read nor written.
namespace fullbore {
namespace {

Attributes rows_of(const TensorType& base) {
  return {{"rows", base.shape.rank() > 0 ? base.shape[0] : int64_t{0}}};
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_dtype(call, 1, "updates", DTypeSet::floating);
  const TensorType& base = call.inputs[0];
  if (base.shape.rank() == 0) call.fail("a scalar has no rows");
  const Attributes rows = rows_of(base);
  const TensorType sums = get_op("scatter_add")
                              .infer({call.op, call.inputs.subspan(1), rows, call.body, call.loc})
                              .front();
  OperandNames::note("base", base);
  if (base != sums) call.fail(fmt::format("needs a base {}, got {}", sums.text(), base.text()));
  return {base};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor base = call.inputs[0];
  return {base + scatter_add(call.inputs[1], call.inputs[2], base.dim(0))};
}

// As if the result lay where the base does: only rows that are added to are read and written.
Cost cost(const CostCall& call) {
  const auto updates = static_cast<double>(call.inputs[1].bytes());
  return {.flops = static_cast<double>(call.inputs[1].elements()),
          .bytes = 3 * updates + static_cast<double>(call.inputs[2].bytes())};
}

// The scatter_add's, and of the base itself.
void reference(ReferenceCall& call) {
  const Attributes rows = rows_of({call.inputs[0]->dtype(), call.inputs[0]->shape()});
  ReferenceCall sums{{call.inputs[1], call.inputs[2]}, call.outputs, rows, nullptr, {}};
  get_op("scatter_add").reference(sums);
  call.outputs = std::move(sums.outputs);
  call.magnitudes = std::move(sums.magnitudes);
  std::vector<double>& y = call.outputs[0].reals();
  for (size_t i = 0; i < y.size(); ++i) {
    const double base = call.inputs[0]->reals()[i];
    y[i] += base;
    call.magnitudes[0][i] = 2 * (call.magnitudes[0][i] + std::abs(base));
  }
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, const Shape& base, const Shape& updates,
                     const Shape& indices) {
    return Sample{
        .why = why,
        .inputs = {SampleInput::normal({DType::f32, base}),
                   SampleInput::normal({DType::f32, updates}),
                   SampleInput::integers({DType::i32, indices}, 0, static_cast<double>(base[0]))},
        .attributes = {}};
  };
  return {
      of("gradients of an embedding and of a head that shares its weight", {7, 5}, {2, 3, 5},
         {2, 3}),
      of("many updates for few rows", {2, 37}, {129, 37}, {129}),
      of("columns in blocks", {9, 130}, {12, 130}, {12}),
      of("rows of one element", {9}, {33}, {33}),
      of("one index", {3}, {}, {}),
      of("no updates: the base", {4, 3}, {0, 3}, {0}),
      of("rows of no elements", {4, 0}, {3, 0}, {3}),
      {.why = "indices out of range write nothing",
       .inputs = {SampleInput::normal({DType::f32, {3, 2}}),
                  SampleInput::normal({DType::f32, {6, 2}}),
                  SampleInput::given({DType::i64, {6}}, {-1, 0, 2, 3, 0, 1e15}).constant()},
       .attributes = {}},
      {.why = "the order of sums: the base comes last",
       .inputs = {SampleInput::given({DType::f32, {2}}, {3e4, 3}),
                  SampleInput::given({DType::f32, {5}}, {1e4, 0.25, -1e4, 0.5, 3}),
                  SampleInput::given({DType::i32, {5}}, {1, 1, 1, 1, 0}).constant()},
       .attributes = {}},
  };
}

std::vector<ErrorSample> errors() {
  const TensorType base{DType::f32, {4, 2}};
  const TensorType indices{DType::i32, {3}};
  return {{"a base of another width",
           {{DType::f32, {4, 3}}, {DType::f32, {3, 2}}, indices},
           {},
           "needs a base f32[4,2], got f32[4,3]"},
          {"updates of other axes than the indices",
           {base, {DType::f32, {2, 2}}, indices},
           {},
           "must begin with the axes of"},
          {"a scalar", {{DType::f32, {}}, {DType::f32, {3}}, indices}, {}, "a scalar has no rows"},
          {"no indices", {base, {DType::f32, {3, 2}}}, {}, "needs 3 operands, got 2"}};
}

const OpRegistrar index_add_op(OpDef{
    .name = "index_add",
    .summary = "a base plus rows by index; of a row, first all that is added to it",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace
}  // namespace fullbore
