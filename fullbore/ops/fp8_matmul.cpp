#include "fullbore/ops/fp8_matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

struct Extents {
  int64_t m, n, k_of_a, k_of_b;

  Extents(const Shape& a, const Shape& b, const Attributes& attributes) {
    const bool transpose_a = attributes.get<bool>("transpose_a");
    const bool transpose_b = attributes.get<bool>("transpose_b");
    m = a[transpose_a ? 1 : 0];
    k_of_a = a[transpose_a ? 0 : 1];
    k_of_b = b[transpose_b ? 1 : 0];
    n = b[transpose_b ? 0 : 1];
  }
};

Fp8Format format(const Attributes& attributes, const char* name) {
  return *parse_fp8_format(attributes.get<std::string>(name));
}

void require_format(const OpCall& call, const char* name) {
  const std::string& given = require_attribute<std::string>(call, name);
  if (!parse_fp8_format(given))
    call.fail(fmt::format("{} is '{}': it may be e4m3 or e5m2", name, given));
}

void require_scale(const OpCall& call, size_t input, const char* name) {
  const TensorType& scale = call.inputs[input];
  OperandNames::note(name, scale);
  const bool fits = scale.dtype == DType::f32 || scale.dtype == call.inputs[0].dtype;
  if (!fits || scale.shape.rank() != 0)
    call.fail(fmt::format("needs {} f32[], got {}", name, scale.text()));
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 4);
  require_dtype(call, 0, "a", DTypeSet::floating);
  require_same_dtype(call, 0, "a", 1, "b");
  require_rank(call, 0, "a", 2);
  require_rank(call, 1, "b", 2);
  for (const char* const name : {"format_a", "format_b"}) require_format(call, name);
  for (const char* const name : {"transpose_a", "transpose_b"}) require_attribute<bool>(call, name);
  const bool wide = require_attribute<bool>(call, "wide");
  require_scale(call, 2, "scale_a");
  require_scale(call, 3, "scale_b");
  const TensorType &a = call.inputs[0], &b = call.inputs[1];
  // Its sums reach 2^25 a product: beyond what f16 has.
  if (a.dtype == DType::f16)
    call.fail(fmt::format("needs a of f64, f32 or bf16, got {}", operand_text("a", a)));
  const Extents e(a.shape, b.shape, call.attributes);
  if (e.k_of_a != e.k_of_b)
    call.fail(fmt::format("contracted extents {} and {} of {} and {} differ", e.k_of_a, e.k_of_b,
                          operand_text("a", a), operand_text("b", b)));
  const Shape shape{e.m, e.n};
  require_elements(call, shape);
  return {{wide ? compute_dtype(a.dtype) : a.dtype, shape}};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  if (call.wanted[2] || call.wanted[3])
    throw UsageError("fp8_matmul: scales have no gradient", call.loc);
  const Tensor a = call.inputs[0], b = call.inputs[1];
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
  return {da, db, {}, {}};
}

// Rounded by elementwise ops. With x = 2^e (1 + f), the unit of the last place is 2^(e - fraction_bits): e is found by
// halving what is left of the exponent's range. Powers of two multiply exactly.
Tensor quantized(Tensor operand, Tensor scale, Fp8Format format) {
  const Fp8Facts facts = fp8_facts(format);
  const Tensor x = widened(operand);
  const Tensor scaled = x * as_dtype(scale, x.dtype());
  const Tensor size = minimum(abs(scaled), facts.largest);
  Tensor left = size * std::ldexp(1.0, -facts.least_exponent);
  Tensor unit = full(x.builder(), x.type(), 1);
  for (const int step : {16, 8, 4, 2, 1}) {
    const Tensor is_small = less(left, std::ldexp(1.0, step));
    unit = select(is_small, unit, unit * std::ldexp(1.0, step));
    left = select(is_small, left, left * std::ldexp(1.0, -step));
  }
  const Tensor rounded = round(left * std::ldexp(1.0, facts.fraction_bits)) * unit *
                         std::ldexp(1.0, facts.least_exponent - facts.fraction_bits);
  const Tensor signed_one = select(less(scaled, 0.0), neg(rounded), rounded);
  return select(logical_or(is_finite(x), not_equal(x, x)), signed_one,
                std::numeric_limits<double>::quiet_NaN());
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor a = call.inputs[0], b = call.inputs[1];
  const DType computed = compute_dtype(a.dtype());
  const Tensor scale_a = as_dtype(call.inputs[2], computed);
  const Tensor scale_b = as_dtype(call.inputs[3], computed);
  // Numbers of 8 bits are numbers of bf16 too.
  const Tensor qa = quantized(a, scale_a, format(call.attributes, "format_a"));
  const Tensor qb = quantized(b, scale_b, format(call.attributes, "format_b"));
  const Tensor sums = matmul(as_dtype(qa, a.dtype()), as_dtype(qb, a.dtype()),
                             {.transpose_a = call.attributes.get<bool>("transpose_a"),
                              .transpose_b = call.attributes.get<bool>("transpose_b"),
                              .out_dtype = computed});
  const Tensor y = sums * (1.0 / (scale_a * scale_b));
  return {call.attributes.get<bool>("wide") ? y : as_dtype(y, a.dtype())};
}

/// A matrix as the product reads it, [rows, k], in the format.
std::vector<double> quantized(const Literal& operand, double scale, Fp8Format format, int64_t rows,
                              int64_t k, bool depth_first) {
  const DType computed = compute_dtype(operand.dtype());
  std::vector<double> result(static_cast<size_t>(rows * k));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < k; ++i)
      result[static_cast<size_t>(row * k + i)] = fp8_quantized(
          operand.at(depth_first ? i * rows + row : row * k + i), scale, format, computed);
  return result;
}

// What tensor cores lose of a sum of 64 products: each of the 33 terms of two instructions that many bits below the
// largest of them. In roundings of f32, whose sums are what magnitudes are of.
constexpr int64_t kSummedInFewBits = 64;
double few_bits() { return 2 * 33 * 0x1p-13 / dtype_epsilon(DType::f32); }

void reference(ReferenceCall& call) {
  const Extents e(call.inputs[0]->shape(), call.inputs[1]->shape(), call.attributes);
  const int64_t k = e.k_of_a;
  const double scale_a = call.inputs[2]->at(0), scale_b = call.inputs[3]->at(0);
  const std::vector<double> a =
      quantized(*call.inputs[0], scale_a, format(call.attributes, "format_a"), e.m, k,
                call.attributes.get<bool>("transpose_a"));
  const std::vector<double> b =
      quantized(*call.inputs[1], scale_b, format(call.attributes, "format_b"), e.n, k,
                !call.attributes.get<bool>("transpose_b"));
  const DType computed = compute_dtype(call.inputs[0]->dtype());
  const double back = 1 / round_to_dtype(scale_a * scale_b, computed);
  std::vector<double>& y = call.outputs[0].reals();
  std::vector<double> magnitudes(y.size());
  for (int64_t row = 0; row < e.m; ++row)
    for (int64_t column = 0; column < e.n; ++column) {
      double sum = 0, sizes = 0, lost = 0, largest = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product =
            a[static_cast<size_t>(row * k + i)] * b[static_cast<size_t>(column * k + i)];
        sum += product;
        sizes += std::abs(product);
        largest = std::max(largest, std::abs(product));
        if ((i + 1) % kSummedInFewBits == 0) lost += std::exchange(largest, 0);
      }
      lost += largest;
      const auto at = static_cast<size_t>(row * e.n + column);
      y[at] = sum * back;
      magnitudes[at] = std::abs(back) * (static_cast<double>(k + 3) * sizes + few_bits() * lost);
    }
  call.magnitudes = {std::move(magnitudes)};
}

Cost cost(const CostCall& call) {
  Cost cost = copy_cost(call);
  const Extents e(call.inputs[0].shape, call.inputs[1].shape, call.attributes);
  cost.flops = 2 * static_cast<double>(call.outputs[0].elements()) * static_cast<double>(e.k_of_a);
  return cost;
}

Attributes attributes(const Fp8MatmulOptions& options) {
  return {{"format_a", std::string(fp8_facts(options.format_a).name)},
          {"format_b", std::string(fp8_facts(options.format_b).name)},
          {"transpose_a", options.transpose_a},
          {"transpose_b", options.transpose_b},
          {"wide", options.wide}};
}

Sample sample(std::string why, int64_t m, int64_t n, int64_t k, Fp8MatmulOptions options = {}) {
  const auto matrix = [](int64_t rows, int64_t columns, bool transposed) {
    return SampleInput::normal(
        {DType::f32, transposed ? Shape{columns, rows} : Shape{rows, columns}});
  };
  const auto scale = [](double value) {
    return SampleInput::given({DType::f32, {}}, {value}).constant();
  };
  return {.why = std::move(why),
          .inputs = {matrix(m, k, options.transpose_a), matrix(k, n, options.transpose_b),
                     scale(96), scale(88)},
          .attributes = attributes(options),
          .gradcheck = false};
}

std::vector<Sample> samples() {
  constexpr Fp8Format e5m2 = Fp8Format::e5m2;
  std::vector<Sample> samples = {
      sample("one product", 1, 1, 1),
      sample("odd", 3, 5, 7),
      sample("a transposed, a of e5m2", 3, 5, 7, {.format_a = e5m2, .transpose_a = true}),
      sample("b transposed, b of e5m2", 3, 5, 7, {.format_b = e5m2, .transpose_b = true}),
      sample("both transposed", 9, 5, 34, {.transpose_a = true, .transpose_b = true}),
      sample("both of e5m2", 5, 6, 40, {.format_a = e5m2, .format_b = e5m2}),
      sample("kept in f32", 5, 6, 7, {.transpose_b = true, .wide = true}),
      sample("one beside 16 and 32", 17, 33, 31),
      sample("a row times a matrix", 1, 33, 17),
      sample("a weight gradient: long k", 5, 6, 130, {.format_a = e5m2, .transpose_a = true}),
      sample("one more than a stage", 4, 3, 65, {.transpose_b = true}),
      sample("no rows", 0, 3, 4),
      sample("no columns", 3, 0, 4, {.transpose_b = true}),
      sample("nothing to contract: zeros", 3, 4, 0),
  };
  const auto special = [](std::string why, std::vector<double> a, double scale,
                          Fp8MatmulOptions options) {
    const auto m = static_cast<int64_t>(a.size());
    Sample made = sample(std::move(why), m, 1, 1, options);
    made.inputs[0].fill = made.inputs[1].fill = made.inputs[2].fill = made.inputs[3].fill =
        SampleInput::Fill::given;
    made.inputs[0].values = std::move(a);
    made.inputs[1].values = {1};
    made.inputs[2].values = {scale};
    made.inputs[3].values = {1};
    return made;
  };
  // 17 and 19 lie in the middle between e4m3's 16, 18 and 20; 2^-10 between 0 and the least number.
  samples.push_back(special("ties, subnormals and the largest of e4m3",
                            {17, 19, -17, 0.0009765625, 0.0029296875, -0.0009765625, 0.015625,
                             0.0146484375, 447, 448, 464, -464, 480, 1e6, 0, -0.0},
                            1, {}));
  // Halved by its scale, which brings them where e5m2 has ties: 9 and 11 between 8, 10 and 12.
  samples.push_back(special("ties, subnormals and the largest of e5m2",
                            {18, 22, -18, 0x1p-16, 0x1.8p-15, -0x1p-16, 0x1p-13, 0x1.cp-14, 57344,
                             114688, 122880, -122880, 131072, 1e9, 0, -0.0},
                            0.5, {.format_a = e5m2}));
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Fp8Format format : {Fp8Format::e4m3, e5m2})
    samples.push_back(special("infinity and NaN are NaN", {infinity, -infinity, nan, 1, 1e30}, 2,
                              {.format_a = format}));
  return samples;
}

std::vector<ErrorSample> errors() {
  const TensorType a{DType::f32, {2, 3}}, b{DType::f32, {3, 5}}, scale{DType::f32, {}};
  const Attributes plain = attributes({});
  Attributes strange = plain;
  strange.set("format_b", std::string("e3m4"));
  return {
      {"two operands", {a, b}, plain, "needs 4 operands, got 2"},
      {"integers",
       {{DType::i8, {2, 3}}, {DType::i8, {3, 5}}, scale, scale},
       plain,
       "needs floating a"},
      {"halves",
       {{DType::f16, {2, 3}}, {DType::f16, {3, 5}}, scale, scale},
       plain,
       "needs a of f64, f32 or bf16, got a f16[2,3]"},
      {"two dtypes", {a, {DType::bf16, {3, 5}}, scale, scale}, plain, "differ in dtype"},
      {"batched", {{DType::f32, {2, 2, 3}}, b, scale, scale}, plain, "needs a of rank 2"},
      {"contracted extents differ",
       {a, {DType::f32, {4, 5}}, scale, scale},
       plain,
       "contracted extents 3 and 4 of a f32[2,3] and b f32[4,5] differ"},
      {"a scale for each row",
       {a, b, {DType::f32, {2}}, scale},
       plain,
       "needs scale_a f32[], got f32[2]"},
      {"a narrow scale",
       {a, b, scale, {DType::bf16, {}}},
       plain,
       "needs scale_b f32[], got bf16[]"},
      {"a format that there is not",
       {a, b, scale, scale},
       strange,
       "format_b is 'e3m4': it may be e4m3 or e5m2"},
  };
}

const OpRegistrar fp8_matmul_op(OpDef{
    .name = "fp8_matmul",
    .summary = "matrix product of operands rounded to 8-bit floats by given scales; sums in f32",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
    .dtypes = {DType::f64, DType::f32, DType::bf16},
});

}  // namespace

Tensor fp8_matmul(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Fp8MatmulOptions options,
                  SourceLoc loc) {
  return apply("fp8_matmul", {a, b, scale_a, scale_b}, attributes(options), loc);
}

}  // namespace fullbore
