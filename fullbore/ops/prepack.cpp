#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

/// The right operand of a matmul as the matmul's kernel reads it. Made by passes (prepack_operands), not by
/// models: packing a matrix is a part of every matmul of a tiled kernel, and as a node of its
/// own it can be made once for many of them.
///
/// x [..., k, n], or [..., n, k] if transposed, becomes [..., N, K, block, vnni]: N blocks of columns, one
/// behind the other, of K times `vnni` rows, of which `vnni` lie together, column by column. What n and k
/// lack to whole blocks and VNNI pairs is zero. bf16 in VNNI pairs stays bf16; alone, low dtypes are packed as f32.
namespace fullbore {
namespace {

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank_at_least(call, 0, "x", 2);
  const TensorType& x = call.inputs[0];
  const bool transposed = require_attribute<bool>(call, "transposed");
  const auto block = require_attribute<int64_t>(call, "block");
  const auto vnni = require_attribute<int64_t>(call, "vnni");
  if (block < 1) call.fail(fmt::format("blocks of {} columns", block));
  if (vnni != 1 && vnni != 2) call.fail(fmt::format("vnni {} is neither 1 nor 2", vnni));
  if (vnni == 2 && x.dtype != DType::bf16)
    call.fail(fmt::format("VNNI pairs are of bf16, not of {}", operand_text("x", x)));
  const int rank = x.shape.rank();
  Shape shape = x.shape.slice(0, rank - 2);
  for (const int64_t extent : {parts(x.shape[rank - (transposed ? 2 : 1)], block),
                               parts(x.shape[rank - (transposed ? 1 : 2)], vnni), block, vnni})
    shape = shape.inserted(shape.rank(), extent);
  require_elements(call, shape);
  return {{vnni == 2 ? x.dtype : compute_dtype(x.dtype), shape}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto block = call.attributes.get<int64_t>("block");
  const auto vnni = call.attributes.get<int64_t>("vnni");
  Tensor x = call.inputs[0];
  if (call.attributes.get<bool>("transposed")) x = swap_axes(x, -2, -1);
  if (vnni == 1) x = widened(x);
  const int rank = x.rank();
  const int64_t n = parts(x.dim(-1), block), k = parts(x.dim(-2), vnni);
  x = pad(x, rank - 1, 0, n * block - x.dim(-1));
  x = pad(x, rank - 2, 0, k * vnni - x.dim(-2));
  Shape shape = x.shape().slice(0, rank - 2);
  for (const int64_t extent : {k, vnni, n, block}) shape = shape.inserted(shape.rank(), extent);
  std::vector<int64_t> order;
  for (int axis = 0; axis < rank - 2; ++axis) order.push_back(axis);
  for (const int axis : {2, 0, 3, 1}) order.push_back(rank - 2 + axis);
  return {transpose(reshape(x, shape), order)};
}

std::vector<Sample> samples() {
  const auto sample = [](const char* why, Shape shape, bool transposed, int64_t block) {
    return Sample{
        .why = why,
        .inputs = {SampleInput::normal({DType::f32, std::move(shape)})},
        .attributes = {{"transposed", transposed}, {"block", block}, {"vnni", int64_t{1}}}};
  };
  return {sample("whole blocks", {3, 8}, false, 4),
          sample("a last block with columns missing", {5, 7}, false, 4),
          sample("transposed", {7, 5}, true, 4),
          sample("wider than any vector", {3, 70}, false, 64),
          sample("deeper than a part of the work", {300, 17}, false, 16),
          sample("transposed, deep", {17, 300}, true, 16),
          sample("batched", {2, 3, 5, 6}, true, 16),
          sample("one column a block", {3, 4}, false, 1),
          sample("no columns", {3, 0}, false, 4),
          sample("no depth", {0, 3}, false, 4)};
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {3, 4}};
  const auto attributes = [](int64_t block, int64_t vnni) {
    return Attributes{{"transposed", false}, {"block", block}, {"vnni", vnni}};
  };
  return {{"a vector", {{DType::f32, {3}}}, attributes(4, 1), "needs x of rank 2 or more"},
          {"integers", {{DType::i32, {3, 4}}}, attributes(4, 1), "needs floating x"},
          {"no columns in a block", {x}, attributes(0, 1), "blocks of 0 columns"},
          {"threes", {x}, attributes(4, 3), "vnni 3 is neither 1 nor 2"},
          {"VNNI pairs of f32", {x}, attributes(4, 2), "VNNI pairs are of bf16, not of x f32[3,4]"},
          {"no attributes", {x}, {}, "needs attribute 'transposed'"}};
}

const OpRegistrar registrar(OpDef{
    .name = "prepack",
    .summary = "a matrix in the blocks of columns that a matmul's kernel reads",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .cost = copy_cost,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace
}  // namespace fullbore
