#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

/// A matmul that is added to what there is already. Made by passes (gemm_accumulation), not by
/// models: where a device has the kernel, the sum that a loop carries is read and written once per
/// iteration, by the matmul itself.
namespace fullbore {
namespace {

// The same as an op of its own, `matmul`, whose result is as wide as sums are.
Attributes product_attributes(const Attributes& attributes) {
  Attributes wide = attributes;
  wide.set("wide", true);
  return wide;
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  const Attributes wide = product_attributes(call.attributes);
  const TensorType result =
      get_op("matmul").infer({call.op, call.inputs.first(2), wide, call.body, call.loc}).front();
  OperandNames::note("c", call.inputs[2]);
  if (call.inputs[2] != result)
    call.fail(fmt::format("needs c {}, got {}", result.text(), call.inputs[2].text()));
  return {result};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor c = call.inputs[2];
  return {c + matmul(call.inputs[0], call.inputs[1],
                     {.transpose_a = call.attributes.get<bool>("transpose_a"),
                      .transpose_b = call.attributes.get<bool>("transpose_b"),
                      .out_dtype = c.dtype(),
                      .tf32 = call.attributes.get_or("tf32", false)})};
}

Cost cost(const CostCall& call) {
  Cost total =
      get_op("matmul").cost({call.inputs.first(2), call.outputs, call.attributes, nullptr});
  total.flops += static_cast<double>(call.outputs[0].elements());
  total.bytes += static_cast<double>(call.outputs[0].bytes());
  return total;
}

// The matmul's, and of c itself.
void reference(ReferenceCall& call) {
  ReferenceCall matmul{
      {call.inputs[0], call.inputs[1]}, call.outputs, call.attributes, nullptr, {}};
  get_op("matmul").reference(matmul);
  call.outputs = std::move(matmul.outputs);
  call.magnitudes = std::move(matmul.magnitudes);
  std::vector<double>& y = call.outputs[0].reals();
  for (size_t i = 0; i < y.size(); ++i) {
    const double c = call.inputs[2]->reals()[i];
    y[i] += c;
    // The sum is rounded once for each pass over depth.
    call.magnitudes[0][i] = call.magnitudes[0][i] * 2 + 8 * std::abs(c);
  }
}

Attributes attributes(bool transpose_a, bool transpose_b) {
  return {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
}

std::vector<Sample> samples() {
  const auto sample = [](const char* why, const Shape& a, const Shape& b, const Shape& c, bool ta,
                         bool tb) {
    const auto normal = [](const Shape& shape) { return SampleInput::normal({DType::f32, shape}); };
    return Sample{
        .why = why, .inputs = {normal(a), normal(b), normal(c)}, .attributes = attributes(ta, tb)};
  };
  return {
      sample("odd", {3, 7}, {7, 5}, {3, 5}, false, false),
      sample("a weight gradient: long k, a transposed", {130, 5}, {130, 6}, {5, 6}, true, false),
      sample("batched, b transposed", {2, 4, 5}, {2, 3, 5}, {2, 4, 3}, false, true),
      sample("one row", {1, 9}, {9, 17}, {1, 17}, false, false),
      sample("nothing to contract", {3, 0}, {0, 4}, {3, 4}, false, false),
      sample("no rows", {0, 3}, {3, 4}, {0, 4}, false, false),
  };
}

std::vector<ErrorSample> errors() {
  const TensorType a{DType::f32, {2, 3}};
  const TensorType b{DType::f32, {3, 5}};
  return {{"c of another shape",
           {a, b, {DType::f32, {5, 2}}},
           attributes(false, false),
           "needs c f32[2,5], got f32[5,2]"},
          {"a narrow sum",
           {{DType::bf16, {2, 3}}, {DType::bf16, {3, 5}}, {DType::bf16, {2, 5}}},
           attributes(false, false),
           "needs c f32[2,5], got bf16[2,5]"},
          {"contracted extents differ",
           {a, {DType::f32, {4, 5}}, {DType::f32, {2, 5}}},
           attributes(false, false),
           "contracted extents 3 and 4"},
          {"no c", {a, b}, attributes(false, false), "needs 3 operands, got 2"}};
}

const OpRegistrar matmul_add_op(OpDef{
    .name = "matmul_add",
    .summary = "c plus a batched matmul; the sum is f32 (f64 for f64)",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
    .dtypes = {DType::f64, DType::f32},  // c of a bf16 or f16 matmul is f32
});

}  // namespace
}  // namespace fullbore
