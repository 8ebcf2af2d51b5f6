#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// A matmul whose right operand is prepacked (prepack). Made by passes (prepack_operands), not by models.
///
/// a [..., m, k], or [..., k, m] if transposed; b [..., N, K, block, vnni] of which `columns` are columns of the
/// result [..., m, columns], which is as wide as sums are if `wide`, else of a's dtype.
namespace fullbore {
namespace {

// The attributes of a `matmul` of the same operands.
Attributes matmul_attributes(const Attributes& attributes) {
  return {{"transpose_a", attributes.get<bool>("transpose_a")},
          {"transpose_b", false},
          {"wide", attributes.get<bool>("wide")}};
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "a", DTypeSet::floating);
  require_rank_at_least(call, 0, "a", 2);
  const TensorType& a = call.inputs[0];
  const TensorType& b = call.inputs[1];
  const int rank = a.shape.rank();
  require_rank(call, 1, "b", rank + 2);
  const bool transpose_a = require_attribute<bool>(call, "transpose_a");
  const bool wide = require_attribute<bool>(call, "wide");
  const auto columns = require_attribute<int64_t>(call, "columns");
  const int64_t blocks = b.shape[rank - 2], depth = b.shape[rank - 1], block = b.shape[rank],
                vnni = b.shape[rank + 1];
  const std::string operands = operand_text("a", a) + " and " + operand_text("b", b);
  if (vnni == 2 ? b.dtype != DType::bf16 || a.dtype != DType::bf16
                : vnni != 1 || b.dtype != compute_dtype(a.dtype))
    call.fail(
        fmt::format("{} do not multiply: b is bf16 in VNNI pairs for a bf16 a, or {} one by one",
                    operands, dtype_name(compute_dtype(a.dtype))));
  if (a.shape.slice(0, rank - 2) != b.shape.slice(0, rank - 2))
    call.fail(fmt::format("leading axes of {} differ", operands));
  const int64_t k = a.shape[rank - (transpose_a ? 2 : 1)];
  if ((k + vnni - 1) / vnni != depth)
    call.fail(fmt::format("contracted extent {} of a is not the depth of {}", k, operands));
  if (columns > blocks * block || columns <= (blocks - 1) * block)
    call.fail(fmt::format("{} columns are not those of {} blocks of {}", columns, blocks, block));
  Shape shape = a.shape.slice(0, rank - 2);
  shape = shape.inserted(shape.rank(), a.shape[rank - (transpose_a ? 1 : 2)]);
  shape = shape.inserted(shape.rank(), columns);
  require_elements(call, shape);
  return {{wide ? compute_dtype(a.dtype) : a.dtype, shape}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor a = call.inputs[0];
  Tensor b = call.inputs[1];
  const int rank = a.rank();
  const bool transpose_a = call.attributes.get<bool>("transpose_a");
  std::vector<int64_t> order;
  for (int axis = 0; axis < rank - 2; ++axis) order.push_back(axis);
  for (const int axis : {1, 3, 0, 2})
    order.push_back(rank - 2 + axis);  // depth, vnni, block, column
  Shape shape = a.shape().slice(0, rank - 2);
  shape = shape.inserted(shape.rank(), b.dim(-3) * b.dim(-1));
  shape = shape.inserted(shape.rank(), b.dim(-4) * b.dim(-2));
  b = reshape(transpose(b, order), shape);
  b = slice(b, rank - 2, 0, a.dim(transpose_a ? -2 : -1));
  b = slice(b, rank - 1, 0, call.attributes.get<int64_t>("columns"));
  const bool wide = call.attributes.get<bool>("wide");
  // In f32, as packed: casting them back would be one more matrix.
  const Tensor y = matmul(
      as_dtype(a, b.dtype()), b,
      {.transpose_a = transpose_a, .out_dtype = wide ? compute_dtype(a.dtype()) : b.dtype()});
  return {wide ? y : as_dtype(y, a.dtype())};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  const Shape& a = call.inputs[0].shape;
  const bool transpose_a = call.attributes.get<bool>("transpose_a");
  cost.flops = 2 * static_cast<double>(call.outputs[0].elements()) *
               static_cast<double>(a[a.rank() - (transpose_a ? 2 : 1)]);
  return cost;
}

// matmul's, of the matrix that was packed.
void reference(ReferenceCall& call) {
  const Shape& prepacked = call.inputs[1]->shape();
  const int rank = prepacked.rank() - 2;
  const Shape& a = call.inputs[0]->shape();
  const int64_t k = a[rank - (call.attributes.get<bool>("transpose_a") ? 2 : 1)];
  const auto n = call.attributes.get<int64_t>("columns");
  const int64_t blocks = prepacked[rank - 2], depth = prepacked[rank - 1], block = prepacked[rank],
                vnni = prepacked[rank + 1];
  const Shape leading = a.slice(0, rank - 2);
  Literal b({call.inputs[0]->dtype(), leading.inserted(rank - 2, k).inserted(rank - 1, n)});
  for (int64_t batch = 0; batch < leading.elements(); ++batch)
    for (int64_t row = 0; row < k; ++row)
      for (int64_t column = 0; column < n; ++column) {
        const int64_t at_block = (batch * blocks + column / block) * depth + row / vnni;
        copy_element(b, (batch * k + row) * n + column, *call.inputs[1],
                     (at_block * block + column % block) * vnni + row % vnni);
      }
  const Attributes attributes = matmul_attributes(call.attributes);
  ReferenceCall matmul{{call.inputs[0], &b}, std::move(call.outputs), attributes, nullptr, {}};
  get_op("matmul").reference(matmul);
  call.outputs = std::move(matmul.outputs);
  call.magnitudes = std::move(matmul.magnitudes);
}

Attributes attributes(int64_t columns, bool transpose_a = false) {
  return {{"transpose_a", transpose_a}, {"columns", columns}, {"wide", false}};
}

std::vector<Sample> samples() {
  const auto sample = [](const char* why, Shape a, Shape b, int64_t columns, bool transpose_a) {
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(a)}),
                             SampleInput::normal({DType::f32, std::move(b)})},
                  .attributes = attributes(columns, transpose_a)};
  };
  return {sample("whole blocks", {3, 5}, {2, 5, 4, 1}, 8, false),
          sample("a last block with columns missing", {3, 5}, {2, 5, 4, 1}, 6, false),
          sample("a transposed", {5, 3}, {1, 5, 16, 1}, 9, true),
          sample("blocks wider than any register tile", {3, 4}, {1, 4, 150, 1}, 140, false),
          sample("blocks of odd width", {20, 9}, {5, 9, 7, 1}, 33, false),
          sample("several tiles", {70, 33}, {3, 33, 64, 1}, 180, false),
          sample("batched", {2, 3, 4}, {2, 2, 4, 4, 1}, 7, false),
          sample("a row", {1, 17}, {3, 17, 16, 1}, 40, false),
          sample("nothing to contract", {3, 0}, {1, 0, 4, 1}, 4, false),
          sample("no rows", {0, 3}, {1, 3, 4, 1}, 4, false),
          sample("no columns", {2, 3}, {0, 3, 4, 1}, 0, false)};
}

std::vector<ErrorSample> errors() {
  const TensorType a{DType::f32, {2, 3}};
  const auto packed = [](DType dtype, Shape shape) { return TensorType{dtype, std::move(shape)}; };
  return {
      {"another depth",
       {a, packed(DType::f32, {1, 4, 8, 1})},
       attributes(8),
       "contracted extent 3 of a is not the depth of a f32[2,3] and b f32[1,4,8,1]"},
      {"more columns than there are",
       {a, packed(DType::f32, {1, 3, 8, 1})},
       attributes(9),
       "9 columns are not those of 1 blocks of 8"},
      {"a block without columns",
       {a, packed(DType::f32, {2, 3, 8, 1})},
       attributes(8),
       "8 columns are not those of 2 blocks of 8"},
      {"VNNI pairs of f32",
       {a, packed(DType::f32, {1, 2, 8, 2})},
       attributes(8),
       "b is bf16 in VNNI pairs for a bf16 a, or f32 one by one"},
      {"a packed operand of low precision",
       {{DType::f16, {2, 3}}, packed(DType::f16, {1, 3, 8, 1})},
       attributes(8),
       "or f32 one by one"},
      {"leading axes differ",
       {{DType::f32, {2, 2, 3}}, packed(DType::f32, {3, 1, 3, 8, 1})},
       attributes(8),
       "leading axes of a f32[2,2,3] and b f32[3,1,3,8,1] differ"},
      {"a matrix", {a, packed(DType::f32, {3, 8})}, attributes(8), "needs b of rank 4"},
      {"integers", {{DType::i32, {2, 3}}, a}, attributes(8), "needs floating a"},
      {"no columns", {a, packed(DType::f32, {1, 3, 8, 1})}, {}, "needs attribute 'transpose_a'"},
      {"no b", {a}, attributes(8), "needs 2 operands, got 1"}};
}

const OpRegistrar registrar(OpDef{
    .name = "prepacked_matmul",
    .summary = "batched matmul by a prepacked matrix",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
    .contracted_operands = 1,  // b lies as its kernel reads it
    .dtypes = {DType::f64, DType::f32},
});

}  // namespace
}  // namespace fullbore
