#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

/// A matmul that a bias of its columns is added to before it is rounded. Made by passes (gemm_bias), not by models: where a
/// device has the kernel, the matmul is not written and read once more for the sake of its bias.
namespace fullbore {
namespace {

// Inputs a, b as of matmul; bias [n], as wide as sums are.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  Attributes narrow = call.attributes;  // of the same as an op of its own, `matmul`
  narrow.set("wide", false);
  const TensorType result =
      get_op("matmul").infer({call.op, call.inputs.first(2), narrow, call.body, call.loc}).front();
  OperandNames::note("bias", call.inputs[2]);
  const TensorType bias{compute_dtype(result.dtype), {result.shape[result.shape.rank() - 1]}};
  if (call.inputs[2] != bias)
    call.fail(fmt::format("needs bias {}, got {}", bias.text(), call.inputs[2].text()));
  return {result};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor &a = call.inputs[0], &bias = call.inputs[2];
  const Tensor sums = matmul(a, call.inputs[1],
                             {.transpose_a = call.attributes.get<bool>("transpose_a"),
                              .transpose_b = call.attributes.get<bool>("transpose_b"),
                              .out_dtype = bias.dtype()});
  return {as_dtype(sums + bias, a.dtype())};
}

Cost cost(const CostCall& call) {
  Cost total =
      get_op("matmul").cost({call.inputs.first(2), call.outputs, call.attributes, nullptr});
  total.flops += static_cast<double>(call.outputs[0].elements());
  total.bytes += static_cast<double>(call.inputs[2].bytes());
  return total;
}

// The matmul's, and of the bias itself.
void reference(ReferenceCall& call) {
  ReferenceCall matmul{
      {call.inputs[0], call.inputs[1]}, call.outputs, call.attributes, nullptr, {}};
  get_op("matmul").reference(matmul);
  call.outputs = std::move(matmul.outputs);
  call.magnitudes = std::move(matmul.magnitudes);
  const std::vector<double>& bias = call.inputs[2]->reals();
  std::vector<double>& y = call.outputs[0].reals();
  for (size_t i = 0; i < y.size(); ++i) {
    const double of_column = bias[i % bias.size()];
    y[i] += of_column;
    call.magnitudes[0][i] = call.magnitudes[0][i] * 2 + std::abs(of_column);
  }
}

std::vector<Sample> samples() {
  const auto sample = [](const char* why, Shape a, Shape b, int64_t columns, bool ta, bool tb) {
    const auto normal = [](Shape shape) { return SampleInput::normal({DType::f32, shape}); };
    return Sample{.why = why,
                  .inputs = {normal(a), normal(b), normal({columns})},
                  .attributes = {{"transpose_a", ta}, {"transpose_b", tb}}};
  };
  return {
      sample("odd", {3, 7}, {7, 5}, 5, false, false),
      sample("a linear layer: b transposed", {17, 33}, {9, 33}, 9, false, true),
      sample("a transposed", {13, 5}, {13, 6}, 6, true, false),
      sample("batched: one bias for all", {2, 4, 5}, {2, 3, 5}, 3, false, true),
      sample("one column", {9, 4}, {4, 1}, 1, false, false),
      sample("nothing to contract: the bias", {3, 0}, {0, 4}, 4, false, false),
      sample("no rows", {0, 3}, {3, 4}, 4, false, false),
      sample("no columns", {3, 4}, {4, 0}, 0, false, false),
  };
}

std::vector<ErrorSample> errors() {
  const Attributes plain{{"transpose_a", false}, {"transpose_b", false}};
  const TensorType a{DType::f32, {2, 3}};
  const TensorType b{DType::f32, {3, 5}};
  return {{"a bias of the rows", {a, b, {DType::f32, {2}}}, plain, "needs bias f32[5], got f32[2]"},
          {"a narrow bias",
           {{DType::bf16, {2, 3}}, {DType::bf16, {3, 5}}, {DType::bf16, {5}}},
           plain,
           "needs bias f32[5], got bf16[5]"},
          {"contracted extents differ",
           {a, {DType::f32, {4, 5}}, {DType::f32, {5}}},
           plain,
           "contracted extents 3 and 4"},
          {"no bias", {a, b}, plain, "needs 3 operands, got 2"}};
}

const OpRegistrar registrar(OpDef{
    .name = "matmul_bias",
    .summary =
        "a batched matmul plus a bias [n], f32 (f64 for f64) until it is rounded to a's dtype",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
    .dtypes = {DType::f64, DType::f32},  // the bias of a bf16 or f16 matmul is f32
});

}  // namespace
}  // namespace fullbore
