#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

/// layer_norm and rms_norm: statistics over the last axis, in f32 or better whatever x is. Their
/// gradients compute the statistics again with the nodes of the decomposition, which merging common
/// subexpressions then makes one with the forward ones: [...] values per row are kept, not [..., C].
namespace fullbore {
namespace {

// Gain and bias are [C], of x's dtype, or f32 for activations that are narrower.
void require_vector(const OpCall& call, size_t input, std::string_view name) {
  const TensorType& x = call.inputs[0];
  const TensorType& vector = call.inputs[input];
  OperandNames::note(name, vector);
  const int64_t width = x.shape[x.shape.rank() - 1];
  const bool fits =
      vector.dtype == x.dtype || (vector.dtype == DType::f32 && is_low_precision(x.dtype));
  if (!fits || vector.shape != Shape{width})
    call.fail(fmt::format("needs {} {}[{}] for {}, got {}", name, dtype_name(x.dtype), width,
                          operand_text("x", x), vector.text()));
}

std::vector<TensorType> infer_norm(const OpCall& call) {
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank_at_least(call, 0, "x", 1);
  const TensorType& x = call.inputs[0];
  if (x.shape[x.shape.rank() - 1] == 0)
    call.fail(fmt::format("the last axis of {} is empty", operand_text("x", x)));
  require_vector(call, 1, "gain");
  if (call.inputs.size() > 2) require_vector(call, 2, "bias");
  const double epsilon = require_attribute<double>(call, "epsilon");
  if (!(epsilon >= 0)) call.fail(fmt::format("epsilon {} is negative", epsilon));
  return {x};
}

std::vector<TensorType> infer_layer_norm(const OpCall& call) {
  require_inputs(call, 2, 3);
  return infer_norm(call);
}
std::vector<TensorType> infer_rms_norm(const OpCall& call) {
  require_inputs(call, 2);
  return infer_norm(call);
}

Tensor row_mean(Tensor x) { return reduce_sum(x, {-1}, true) / static_cast<double>(x.dim(-1)); }

// The sum over all axes but the last, as the gradient of a [C] operand.
Tensor sum_of_rows(Tensor x, DType dtype) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) axes.push_back(axis);
  return as_dtype(reduce_sum(x, axes), dtype);
}

// x less its mean if `centred`, over its root of the mean square.
struct Normalised {
  Tensor value;       // [..., C]
  Tensor reciprocal;  // [..., 1]: 1 / sqrt(mean square + epsilon)
};

Normalised normalise(Tensor x, const Attributes& attributes, bool centred) {
  const Tensor wide = widened(x);
  const Tensor centre = centred ? wide - row_mean(wide) : wide;
  const Tensor reciprocal = rsqrt(row_mean(centre * centre) + attributes.get<double>("epsilon"));
  return {centre * reciprocal, reciprocal};
}

template <bool centred>
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const DType compute = compute_dtype(x.dtype());
  Tensor y = normalise(x, call.attributes, centred).value * as_dtype(call.inputs[1], compute);
  if (call.inputs.size() > 2) y = y + as_dtype(call.inputs[2], compute);
  return {as_dtype(y, x.dtype())};
}

// With n the normalised x and g = dy gain: dx = (g - n mean(g n) [- mean(g)]) / sqrt(...).
template <bool centred>
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0];
  const Tensor gain = call.inputs[1];
  const Tensor dy = widened(call.cotangents[0]);
  const Normalised n = normalise(x, call.attributes, centred);
  std::vector<Tensor> cotangents(call.inputs.size());
  if (call.wanted[0]) {
    const Tensor g = dy * as_dtype(gain, dy.dtype());
    Tensor rest = g - n.value * row_mean(g * n.value);
    if (centred) rest = rest - row_mean(g);
    cotangents[0] = as_dtype(rest * n.reciprocal, x.dtype());
  }
  if (call.wanted[1]) cotangents[1] = sum_of_rows(dy * n.value, gain.dtype());
  if (call.inputs.size() > 2 && call.wanted[2])
    cotangents[2] = sum_of_rows(dy, call.inputs[2].dtype());
  return cotangents;
}

// Independent of the decomposition: the definition in plain loops.
template <bool centred>
void reference(ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0]->reals();
  const AxisView rows(call.inputs[0]->shape(), call.inputs[0]->shape().rank() - 1);
  const auto width = static_cast<size_t>(rows.extent);
  // As the constant that the decomposition adds.
  const double epsilon = round_to_dtype(call.attributes.get<double>("epsilon"),
                                        compute_dtype(call.inputs[0]->dtype()));
  for (size_t row = 0; row < static_cast<size_t>(rows.outer); ++row) {
    const double* in = x.data() + row * width;
    double* out = call.outputs[0].reals().data() + row * width;
    double mean = 0;
    for (size_t i = 0; centred && i < width; ++i) mean += in[i] / static_cast<double>(width);
    double variance = 0;
    for (size_t i = 0; i < width; ++i)
      variance += (in[i] - mean) * (in[i] - mean) / static_cast<double>(width);
    const double deviation = std::sqrt(variance + epsilon);
    for (size_t i = 0; i < width; ++i) {
      out[i] = (in[i] - mean) / deviation * call.inputs[1]->reals()[i];
      if (call.inputs.size() > 2) out[i] += call.inputs[2]->reals()[i];
    }
  }
}

std::vector<Sample> samples(bool with_bias) {
  const auto sample = [&](const char* why, SampleInput x) {
    const TensorType vector{x.type.dtype, {x.type.shape[x.type.shape.rank() - 1]}};
    Sample result{.why = why,
                  .inputs = {std::move(x), SampleInput::normal(vector)},
                  .attributes = {{"epsilon", 1e-5}}};
    if (with_bias) result.inputs.push_back(SampleInput::normal(vector));
    return result;
  };
  const auto random = [&](const char* why, Shape shape) {
    return sample(why, SampleInput::normal({DType::f32, std::move(shape)}));
  };
  return {
      random("rows, odd", {3, 5}),
      random("one row", {9}),
      random("batch and time", {2, 3, 16}),
      random("one above 16 lanes", {4, 17}),
      random("one below 128", {2, 127}),
      random("one above 128", {2, 129}),
      random("one above 1024", {1, 1025}),
      random("many rows", {65, 8}),
      random("no rows", {0, 4}),
      sample("a mean far from zero", SampleInput::uniform({DType::f32, {4, 33}}, 60, 62)),
      sample("a spread far below epsilon", SampleInput::uniform({DType::f32, {3, 8}}, -1e-4, 1e-4)),
      sample("large values", SampleInput::uniform({DType::f32, {3, 8}}, -5000, 5000)),
      // Differences that are themselves rounding: no finite differences.
      [&] {
        Sample equal = sample("equal values: no spread at all",
                              SampleInput::given({DType::f32, {2, 3}}, {2, 2, 2, 0, 0, 0}));
        equal.gradcheck = false;
        return equal;
      }(),
      [&] {
        Sample one = random("rows of one element", {4, 1});
        one.gradcheck = with_bias;
        return one;
      }(),
  };
}

std::vector<Sample> layer_norm_samples() {
  std::vector<Sample> without = samples(false);
  without.resize(3);
  return with(samples(true), std::move(without));
}
std::vector<Sample> rms_norm_samples() { return samples(false); }

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {4, 8}};
  const TensorType gain{DType::f32, {8}};
  const Attributes epsilon{{"epsilon", 1e-5}};
  return {{"a gain of another width",
           {x, {DType::f32, {4}}},
           epsilon,
           "needs gain f32[8] for x f32[4,8], got f32[4]"},
          {"a gain of another dtype",
           {x, {DType::bf16, {8}}},
           epsilon,
           "needs gain f32[8] for x f32[4,8], got bf16[8]"},
          {"integers", {{DType::i32, {4, 8}}, gain}, epsilon, "needs floating x, got i32[4,8]"},
          {"rows of nothing",
           {{DType::f32, {4, 0}}, {DType::f32, {0}}},
           epsilon,
           "the last axis of x f32[4,0] is empty"},
          {"a scalar", {{DType::f32, {}}, gain}, epsilon, "needs x of rank 1 or more, got f32[]"},
          {"a negative epsilon", {x, gain}, {{"epsilon", -1.0}}, "epsilon -1 is negative"}};
}

std::vector<ErrorSample> layer_norm_errors() {
  std::vector<ErrorSample> all = errors();
  all.push_back({"a bias of another width",
                 {{DType::f32, {4, 8}}, {DType::f32, {8}}, {DType::f32, {4}}},
                 {{"epsilon", 1e-5}},
                 "needs bias f32[8] for x f32[4,8], got f32[4]"});
  return all;
}

const OpRegistrar layer_norm_op(OpDef{
    .name = "layer_norm",
    .summary = "rows less their mean, over their deviation, times gain, plus bias",
    .tags = Tag::composite,
    .infer = infer_layer_norm,
    .vjp = vjp<true>,
    .decompose = decompose<true>,
    .reference = reference<true>,
    .samples = layer_norm_samples,
    .error_samples = layer_norm_errors,
});

const OpRegistrar rms_norm_op(OpDef{
    .name = "rms_norm",
    .summary = "rows over the root of their mean square, times gain",
    .tags = Tag::composite,
    .infer = infer_rms_norm,
    .vjp = vjp<false>,
    .decompose = decompose<false>,
    .reference = reference<false>,
    .samples = rms_norm_samples,
    .error_samples = errors,
});

}  // namespace

Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, double epsilon, SourceLoc loc) {
  require_tensor("layer_norm", "x", x, loc);
  require_tensor("layer_norm", "gain", gain, loc);
  const Attributes attributes{{"epsilon", epsilon}};
  return bias.valid() ? apply("layer_norm", {x, gain, bias}, attributes, loc)
                      : apply("layer_norm", {x, gain}, attributes, loc);
}

Tensor rms_norm(Tensor x, Tensor gain, double epsilon, SourceLoc loc) {
  require_tensor("rms_norm", "x", x, loc);
  require_tensor("rms_norm", "gain", gain, loc);
  return apply("rms_norm", {x, gain}, {{"epsilon", epsilon}}, loc);
}

}  // namespace fullbore
