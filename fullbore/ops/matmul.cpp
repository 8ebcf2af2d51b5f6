#include <algorithm>
#include <cmath>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Extents of one call: a holds [batch, m, k] (or k, m), b [batch, k, n] (or n, k).
struct Extents {
  Shape leading;
  int64_t m = 0, n = 0, k_of_a = 0, k_of_b = 0;

  Extents(const Shape& a, const Shape& b, const Attributes& attributes)
      : leading(a.slice(0, a.rank() - 2)) {
    const bool transpose_a = attributes.get<bool>("transpose_a");
    const bool transpose_b = attributes.get<bool>("transpose_b");
    m = a[a.rank() - (transpose_a ? 1 : 2)];
    k_of_a = a[a.rank() - (transpose_a ? 2 : 1)];
    k_of_b = b[b.rank() - (transpose_b ? 1 : 2)];
    n = b[b.rank() - (transpose_b ? 2 : 1)];
  }
};

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "a", DTypeSet::floating);
  require_same_dtype(call, 0, "a", 1, "b");
  require_rank_at_least(call, 0, "a", 2);
  require_rank(call, 1, "b", call.inputs[0].shape.rank());
  require_attribute<bool>(call, "transpose_a");
  require_attribute<bool>(call, "transpose_b");
  const bool wide = require_attribute<bool>(call, "wide");
  if (call.attributes.has("tf32")) require_attribute<bool>(call, "tf32");
  const TensorType& a = call.inputs[0];
  const TensorType& b = call.inputs[1];
  const std::string operands = operand_text("a", a) + " and " + operand_text("b", b);
  const Extents extents(a.shape, b.shape, call.attributes);
  if (extents.leading != b.shape.slice(0, b.shape.rank() - 2))
    call.fail(fmt::format("leading axes of {} differ", operands));
  if (extents.k_of_a != extents.k_of_b)
    call.fail(fmt::format(
        "contracted extents {} and {} of {}{} differ", extents.k_of_a, extents.k_of_b, operands,
        call.attributes.get<bool>("transpose_a") || call.attributes.get<bool>("transpose_b")
            ? fmt::format(" (transpose_a {}, transpose_b {})",
                          call.attributes.get<bool>("transpose_a"),
                          call.attributes.get<bool>("transpose_b"))
            : ""));
  Shape shape = extents.leading;
  shape = shape.inserted(shape.rank(), extents.m);
  shape = shape.inserted(shape.rank(), extents.n);
  require_elements(call, shape);
  return {{wide ? compute_dtype(a.dtype) : a.dtype, shape}};
}

// What operands of 10 bits of mantissa, each off by 2^-11 at most, add to a product's error: in roundings of f32, whose
// sums are what magnitudes are of.
double rounding_of_operands(const ReferenceCall& call) {
  const bool tf32 = call.attributes.get_or("tf32", false);
  if (!tf32 || call.inputs[0]->dtype() != DType::f32) return 0;
  return (0x1p-10 + 0x1p-22) / dtype_epsilon(DType::f32);
}

void reference(ReferenceCall& call) {
  const std::vector<double>& a = call.inputs[0]->reals();
  const std::vector<double>& b = call.inputs[1]->reals();
  std::vector<double>& y = call.outputs[0].reals();
  const bool transpose_a = call.attributes.get<bool>("transpose_a");
  const bool transpose_b = call.attributes.get<bool>("transpose_b");
  const Extents e(call.inputs[0]->shape(), call.inputs[1]->shape(), call.attributes);
  const int64_t k = e.k_of_a;
  const double roundings = static_cast<double>(k) + rounding_of_operands(call);
  std::vector<double> magnitudes(y.size(), 0);
  std::vector<double> matrix(static_cast<size_t>(k * e.n));  // B, whichever way b lies
  for (int64_t batch = 0; batch < e.leading.elements(); ++batch) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t column = 0; column < e.n; ++column)
        matrix[static_cast<size_t>(i * e.n + column)] = b[static_cast<size_t>(
            batch * e.n * k + (transpose_b ? column * k + i : i * e.n + column))];
    for (int64_t row = 0; row < e.m; ++row) {
      double* const sums = y.data() + (batch * e.m + row) * e.n;
      double* const magnitude = magnitudes.data() + (batch * e.m + row) * e.n;
      std::fill_n(sums, e.n, 0.0);
      // Each element's terms in the order of i; columns inside, which the compiler makes vectors of.
      for (int64_t i = 0; i < k; ++i) {
        const double factor =
            a[static_cast<size_t>(batch * e.m * k + (transpose_a ? i * e.m + row : row * k + i))];
        const double* const terms = matrix.data() + i * e.n;
        for (int64_t column = 0; column < e.n; ++column) {
          const double product = factor * terms[column];
          sums[column] += product;
          magnitude[column] += std::abs(product);
        }
      }
      for (int64_t column = 0; column < e.n; ++column) magnitude[column] *= roundings;
    }
  }
  call.magnitudes = {std::move(magnitudes)};
}

// With y = A B, where A is a or its transpose and B likewise: dA = dy B^T and dB = A^T dy. Every
// transpose that this asks for is one that matmul makes itself, so none is ever a node.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor a = call.inputs[0];
  const Tensor b = call.inputs[1];
  const bool ta = call.attributes.get<bool>("transpose_a");
  const bool tb = call.attributes.get<bool>("transpose_b");
  const Tensor dy = as_dtype(call.cotangents[0], a.dtype());
  Tensor da, db;
  if (call.wanted[0])
    da = ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true})
            : matmul(dy, b, {.transpose_b = !tb});
  if (call.wanted[1])
    db = tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta})
            : matmul(a, dy, {.transpose_a = !ta});
  return {da, db};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  const Extents e(call.inputs[0].shape, call.inputs[1].shape, call.attributes);
  cost.flops = 2 * static_cast<double>(call.outputs[0].elements()) * static_cast<double>(e.k_of_a);
  return cost;
}

// wide: the result keeps the f32 that bf16 and f16 products are summed in. No dtype, for no other
// choice would have a kernel.
// tf32, where there is one: f32 operands may be rounded to 10 bits of mantissa (passes/precision/lower_precision.h).
Attributes attributes(bool transpose_a, bool transpose_b, bool wide = false) {
  return {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"wide", wide}};
}

// Operands for a product of [leading..., m, k] and [leading..., k, n].
Sample sample(std::string why, Shape leading, int64_t m, int64_t n, int64_t k, bool transpose_a,
              bool transpose_b) {
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    Shape shape = leading.inserted(leading.rank(), transposed ? columns : rows);
    shape = shape.inserted(shape.rank(), transposed ? rows : columns);
    return SampleInput::normal({DType::f32, shape});
  };
  return {.why = std::move(why),
          .inputs = {matrix(m, k, transpose_a), matrix(k, n, transpose_b)},
          .attributes = attributes(transpose_a, transpose_b)};
}

std::vector<Sample> samples() {
  std::vector<Sample> samples = {
      sample("one product", {}, 1, 1, 1, false, false),
      sample("odd", {}, 3, 5, 7, false, false),
      sample("a transposed", {}, 3, 5, 7, true, false),
      sample("b transposed", {}, 3, 5, 7, false, true),
      sample("both transposed", {}, 3, 5, 7, true, true),
      sample("batched", {2}, 4, 3, 5, false, false),
      sample("batched, both transposed", {2, 3}, 2, 3, 4, true, true),
      sample("a row times a matrix", {}, 1, 33, 17, false, false),
      sample("a matrix times a column", {}, 33, 1, 17, false, true),
      sample("outer product", {}, 9, 17, 1, false, false),
      sample("inner product", {}, 1, 1, 129, false, false),
      sample("one beside 16 and 32", {}, 15, 33, 17, false, false),
      sample("a weight gradient: long k, a transposed", {}, 5, 6, 130, true, false),
      sample("no rows", {}, 0, 3, 4, false, false),
      sample("no columns", {}, 3, 0, 4, false, true),
      sample("nothing to contract: zeros", {}, 3, 4, 0, false, false),
      sample("nothing to contract, both transposed", {2}, 3, 4, 0, true, true),
      sample("no batches", {0}, 2, 3, 4, false, false),
  };
  Sample wide = sample("products kept in f32", {}, 5, 6, 7, false, true);
  wide.attributes = attributes(false, true, true);
  samples.push_back(std::move(wide));
  samples.push_back({.why = "terms that cancel",
                     .inputs = {SampleInput::given({DType::f32, {1, 4}}, {1000, 1, -1000, 0.5}),
                                SampleInput::given({DType::f32, {4, 1}}, {100, 1, 100, 2})},
                     .attributes = attributes(false, false)});
  return samples;
}

std::vector<ErrorSample> errors() {
  const Attributes plain = attributes(false, false);
  return {
      {"contracted extents differ",
       {{DType::f32, {2, 3}}, {DType::f32, {4, 5}}},
       plain,
       "contracted extents 3 and 4 of a f32[2,3] and b f32[4,5] differ"},
      {"contracted extents differ, transposed",
       {{DType::f32, {2, 3}}, {DType::f32, {3, 5}}},
       attributes(false, true),
       "(transpose_a false, transpose_b true) differ"},
      {"leading axes differ",
       {{DType::f32, {2, 4, 3}}, {DType::f32, {3, 3, 5}}},
       plain,
       "leading axes of a f32[2,4,3] and b f32[3,3,5] differ"},
      {"ranks differ",
       {{DType::f32, {2, 4, 3}}, {DType::f32, {3, 5}}},
       plain,
       "needs b of rank 3, got f32[3,5]"},
      {"a vector",
       {{DType::f32, {3}}, {DType::f32, {3}}},
       plain,
       "needs a of rank 2 or more, got f32[3]"},
      {"two dtypes", {{DType::f32, {2, 3}}, {DType::bf16, {3, 5}}}, plain, "differ in dtype"},
      {"integers", {{DType::i32, {2, 3}}, {DType::i32, {3, 5}}}, plain, "needs floating a"},
      {"one operand", {{DType::f32, {2, 3}}}, plain, "needs 2 operands, got 1"},
  };
}

const OpRegistrar matmul_op(OpDef{
    .name = "matmul",
    .summary = "batched matrix product",
    .tags = Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor matmul(Tensor a, Tensor b, MatmulOptions options, SourceLoc loc) {
  require_tensor("matmul", "a", a, loc);
  require_tensor("matmul", "b", b, loc);
  const DType out_dtype = options.out_dtype.value_or(a.dtype());
  const bool wide = out_dtype != a.dtype();
  if (wide && !(is_low_precision(a.dtype()) && out_dtype == DType::f32))
    throw UsageError(fmt::format("matmul: out_dtype {} of {}: it may be a's dtype, or f32 if that "
                                 "is bf16 or f16",
                                 dtype_name(out_dtype), operand_text("a", a.type())),
                     loc);
  Attributes chosen = attributes(options.transpose_a, options.transpose_b, wide);
  if (options.tf32 && a.dtype() == DType::f32) chosen.set("tf32", true);
  return apply("matmul", {a, b}, std::move(chosen), loc);
}

Tensor linear(Tensor x, Tensor weight, Tensor bias, SourceLoc loc) {
  require_tensor("linear", "x", x, loc);
  require_tensor("linear", "weight", weight, loc);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("linear: {}", why), loc);
  };
  const std::string operands =
      operand_text("x", x.type()) + " and " + operand_text("weight", weight.type());
  if (x.rank() < 1) refuse("x is a scalar");
  if (weight.rank() != 2)
    refuse(fmt::format("needs weight of rank 2, got {}", weight.type().text()));
  if (x.dtype() != weight.dtype()) refuse(operands + " differ in dtype");
  if (x.dim(-1) != weight.dim(1)) refuse(operands + " differ in their last extent");
  if (bias.valid() && (bias.shape() != Shape{weight.dim(0)} || bias.dtype() != weight.dtype()))
    refuse(fmt::format("needs bias {}[{}], got {}", dtype_name(weight.dtype()), weight.dim(0),
                       bias.type().text()));
  const Shape leading = x.shape().slice(0, x.rank() - 1);
  const Tensor rows = x.rank() == 2 ? x : reshape(x, {leading.elements(), x.dim(-1)}, loc);
  Tensor y = matmul(rows, weight, {.transpose_b = true}, loc);
  if (bias.valid()) y = add({y, loc}, {bias, loc});
  return x.rank() == 2 ? y : reshape(y, leading.inserted(leading.rank(), weight.dim(0)), loc);
}

}  // namespace fullbore
