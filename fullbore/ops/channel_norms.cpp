#include "fullbore/ops/channel_norms.h"

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// A vector of channels, so that it is broadcast over x [N,C,*S].
Tensor by_channel(Tensor vector, const Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.rank()) - 1, 1);
  shape[0] = x.dim(1);
  return reshape(vector, Shape(shape));
}

std::vector<int64_t> axes_but_channels(const Tensor& x) {
  std::vector<int64_t> axes{0};
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

void require_vector(const OpCall& call, size_t input, std::string_view name) {
  const TensorType &x = call.inputs[0], &vector = call.inputs[input];
  OperandNames::note(name, vector);
  if (vector.shape == Shape{x.shape[1]} &&
      (vector.dtype == x.dtype || vector.dtype == compute_dtype(x.dtype)))
    return;
  call.fail(fmt::format("needs {} {}[{}] for {}, got {}", name, dtype_name(x.dtype), x.shape[1],
                        operand_text("x", x), vector.text()));
}

// x [N,C,*S], gain [C], bias [C] -> y, mean [C], variance [C]
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 3);
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank_at_least(call, 0, "x", 2);
  const TensorType& x = call.inputs[0];
  require_vector(call, 1, "gain");
  require_vector(call, 2, "bias");
  for (int axis = 0; axis < x.shape.rank(); ++axis)
    if (axis != 1 && x.shape[axis] == 0)
      call.fail(fmt::format("channels of {} have no elements", operand_text("x", x)));
  const double epsilon = require_attribute<double>(call, "epsilon");
  if (!(epsilon >= 0)) call.fail(fmt::format("epsilon {} is negative", epsilon));
  const TensorType statistics{compute_dtype(x.dtype), {x.shape[1]}};
  return {x, statistics, statistics};
}

struct Statistics {
  Tensor mean, variance;          // [C]
  Tensor deviations, reciprocal;  // x less its mean; 1 / sqrt(variance + epsilon), for broadcasting
};

Statistics statistics_of(Tensor x, const Attributes& attributes) {
  const Tensor wide = widened(x);
  const std::vector<int64_t> axes = axes_but_channels(x);
  const double count = static_cast<double>(x.type().elements()) /
                       static_cast<double>(std::max<int64_t>(1, x.dim(1)));
  Statistics s;
  s.mean = reduce_sum(wide, axes) / count;
  s.deviations = wide - by_channel(s.mean, x);
  s.variance = reduce_sum(s.deviations * s.deviations, axes) / count;
  s.reciprocal = by_channel(rsqrt(s.variance + attributes.get<double>("epsilon")), x);
  return s;
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const DType compute = compute_dtype(x.dtype());
  const Statistics s = statistics_of(x, call.attributes);
  const Tensor gain = by_channel(as_dtype(call.inputs[1], compute), x);
  const Tensor bias = by_channel(as_dtype(call.inputs[2], compute), x);
  return {as_dtype(s.deviations * (s.reciprocal * gain) + bias, x.dtype()), s.mean, s.variance};
}

// With n = (x - mean) r and sums over a channel's M elements: dx = (gain r / M) (M dy - sum(dy) - n sum(dy n)), plus
// dmean / M and dvariance 2 (x - mean) / M.
std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor x = call.inputs[0], gain = call.inputs[1];
  const DType compute = compute_dtype(x.dtype());
  const std::vector<int64_t> axes = axes_but_channels(x);
  const double count = static_cast<double>(x.type().elements()) /
                       static_cast<double>(std::max<int64_t>(1, x.dim(1)));
  const Statistics s = statistics_of(x, call.attributes);
  const Tensor dy = widened(call.cotangents[0].valid() ? call.cotangents[0] : zeros_like(x));
  const Tensor sum = reduce_sum(dy, axes);
  const Tensor normal = s.deviations * s.reciprocal;
  const Tensor sum_normal = reduce_sum(dy * normal, axes);
  std::vector<Tensor> cotangents(3);
  if (call.wanted[0]) {
    const Tensor scale = by_channel(as_dtype(gain, compute), x) * s.reciprocal;
    Tensor dx =
        scale * (dy - by_channel(sum / count, x) - normal * by_channel(sum_normal / count, x));
    if (call.cotangents[1].valid()) dx = dx + by_channel(call.cotangents[1] / count, x);
    if (call.cotangents[2].valid())
      dx = dx + s.deviations * by_channel(call.cotangents[2] * (2 / count), x);
    cotangents[0] = as_dtype(dx, x.dtype());
  }
  if (call.wanted[1]) cotangents[1] = as_dtype(sum_normal, gain.dtype());
  if (call.wanted[2]) cotangents[2] = as_dtype(sum, call.inputs[2].dtype());
  return cotangents;
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const AxisView view(x.shape(), 1);
  const auto count = static_cast<double>(view.outer * view.inner);
  const double epsilon =
      round_to_dtype(call.attributes.get<double>("epsilon"), compute_dtype(x.dtype()));
  for (int64_t c = 0; c < view.extent; ++c) {
    double mean = 0, variance = 0;
    const auto each = [&](const auto& visit) {
      for (int64_t o = 0; o < view.outer; ++o)
        for (int64_t n = 0; n < view.inner; ++n) visit(view.at(o, c, n));
    };
    each([&](int64_t at) { mean += x.at(at) / count; });
    each([&](int64_t at) { variance += (x.at(at) - mean) * (x.at(at) - mean) / count; });
    const double scale = call.inputs[1]->at(c) / std::sqrt(variance + epsilon);
    each([&](int64_t at) {
      call.outputs[0].put(at, (x.at(at) - mean) * scale + call.inputs[2]->at(c));
    });
    call.outputs[1].put(c, mean);
    call.outputs[2].put(c, variance);
  }
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, SampleInput x) {
    const TensorType vector{DType::f32, {x.type.shape[1]}};
    return Sample{
        .why = why,
        .inputs = {std::move(x), SampleInput::normal(vector), SampleInput::normal(vector)},
        .attributes = {{"epsilon", 1e-5}}};
  };
  const auto random = [&](const char* why, Shape shape) {
    return of(why, SampleInput::normal({DType::f32, std::move(shape)}));
  };
  return {random("images", {3, 4, 2, 5}),
          random("vectors", {7, 3}),
          random("sequences, wider than 16 lanes", {2, 3, 17}),
          random("volumes of one image", {1, 2, 2, 3, 2}),
          random("no channels", {2, 0, 3}),
          of("a mean far from zero", SampleInput::uniform({DType::f32, {5, 2, 9}}, 60, 62))};
}

std::vector<ErrorSample> errors() {
  const TensorType x{DType::f32, {4, 8, 3}}, vector{DType::f32, {8}};
  const Attributes epsilon{{"epsilon", 1e-5}};
  return {
      {"a gain of another width",
       {x, {DType::f32, {4}}, vector},
       epsilon,
       "needs gain f32[8] for x f32[4,8,3], got f32[4]"},
      {"a bias of another dtype",
       {x, vector, {DType::i32, {8}}},
       epsilon,
       "needs bias f32[8] for x f32[4,8,3], got i32[8]"},
      {"no images",
       {{DType::f32, {0, 8}}, vector, vector},
       epsilon,
       "channels of x f32[0,8] have no elements"},
      {"a vector", {{DType::f32, {8}}, vector, vector}, epsilon, "needs x of rank 2 or more"},
      {"a negative epsilon", {x, vector, vector}, {{"epsilon", -1.0}}, "epsilon -1 is negative"}};
}

const OpRegistrar batch_norm_op(OpDef{
    .name = "batch_norm",
    .summary = "channels less their mean over batch and positions, over their deviation, times "
               "gain, plus bias",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

void check_channels(const char* op, const Tensor& x, const Tensor& vector, const char* name,
                    SourceLoc loc) {
  if (!vector.valid() || vector.shape() == Shape{x.dim(1)}) return;
  throw UsageError(fmt::format("{}: needs {} [{}] for {}, got {}", op, name, x.dim(1),
                               operand_text("x", x.type()), vector.type().text()),
                   loc);
}

}  // namespace

BatchNormResult batch_norm(Tensor x, Tensor gain, Tensor bias, double epsilon, SourceLoc loc) {
  require_tensor("batch_norm", "x", x, loc);
  require_tensor("batch_norm", "gain", gain, loc);
  require_tensor("batch_norm", "bias", bias, loc);
  const std::vector<Tensor> made =
      apply_all("batch_norm", std::vector{x, gain, bias}, {{"epsilon", epsilon}}, loc);
  return {made[0], made[1], made[2]};
}

Tensor batch_norm_by(Tensor x, Tensor gain, Tensor bias, Tensor mean, Tensor variance,
                     double epsilon, SourceLoc loc) {
  constexpr const char* kOp = "batch_norm_by";
  require_tensor(kOp, "x", x, loc);
  if (x.rank() < 2 || !is_floating(x.dtype()))
    throw UsageError(fmt::format("{}: needs floating x [N,C,*S], got {}", kOp, x.type().text()),
                     loc);
  const DType compute = compute_dtype(x.dtype());
  const auto vector = [&](Tensor each, const char* name) {
    require_tensor(kOp, name, each, loc);
    check_channels(kOp, x, each, name, loc);
    return cast(each, compute, loc);
  };
  const Tensor scale =
      mul({vector(gain, "gain"), loc},
          {rsqrt(add({vector(variance, "variance"), loc}, {epsilon, loc}), loc), loc});
  const Tensor deviations =
      sub({cast(x, compute, loc), loc}, {by_channel(vector(mean, "mean"), x), loc});
  const Tensor y = add({mul({deviations, loc}, {by_channel(scale, x), loc}), loc},
                       {by_channel(vector(bias, "bias"), x), loc});
  return cast(y, x.dtype(), loc);
}

Tensor group_norm(Tensor x, int64_t groups, Tensor gain, Tensor bias, double epsilon,
                  SourceLoc loc) {
  constexpr const char* kOp = "group_norm";
  require_tensor(kOp, "x", x, loc);
  if (x.rank() < 2 || !is_floating(x.dtype()))
    throw UsageError(fmt::format("{}: needs floating x [N,C,*S], got {}", kOp, x.type().text()),
                     loc);
  if (groups < 1 || x.dim(1) % groups != 0)
    throw UsageError(fmt::format("{}: {} channels of {} do not divide into {} groups", kOp,
                                 x.dim(1), operand_text("x", x.type()), groups),
                     loc);
  check_channels(kOp, x, gain, "gain", loc);
  check_channels(kOp, x, bias, "bias", loc);
  const int64_t width = x.shape().slice(2, x.rank()).elements() * (x.dim(1) / groups);
  const DType compute = compute_dtype(x.dtype());
  const Tensor rows = cast(reshape(x, {x.dim(0) * groups, width}, loc), compute, loc);
  const Tensor ones = full(x.builder(), {compute, {width}}, 1, loc);
  Tensor y = reshape(layer_norm(rows, ones, {}, epsilon, loc), x.shape(), loc);
  if (gain.valid()) y = mul({y, loc}, {by_channel(cast(gain, compute, loc), x), loc});
  if (bias.valid()) y = add({y, loc}, {by_channel(cast(bias, compute, loc), x), loc});
  return cast(y, x.dtype(), loc);
}

}  // namespace fullbore
