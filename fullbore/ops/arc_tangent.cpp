#include "fullbore/ops/arc_tangent.h"

#include <cmath>
#include <numbers>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/elementary.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

constexpr double kPi = std::numbers::pi;

// By Horner's rule, the highest power's coefficient apart.
Tensor polynomial(Tensor z, double highest, std::initializer_list<double> others) {
  Tensor sum;
  for (double coefficient : others)
    sum = sum.valid() ? sum * z + coefficient : z * highest + coefficient;
  return sum;
}

// The angle of the smaller over the larger coordinate, then into its octant and quadrant.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor y = widened(call.inputs[0]), x = widened(call.inputs[1]);
  const Tensor ay = abs(y), ax = abs(x), most = maximum(ax, ay), least = minimum(ax, ay);
  const Tensor ratio =
      select(equal(most, 0.0), 0.0, select(equal(least, HUGE_VAL), 1.0, least / most));
  Tensor angle = arc_tangent(ratio);
  angle = select(less(ax, ay), kPi / 2 - angle, angle);
  // 1 / x tells -0 from 0.
  const auto negative = [](Tensor t) { return logical_or(less(t, 0.0), less(1.0 / t, 0.0)); };
  angle = select(negative(x), kPi - angle, angle);
  return {as_dtype(select(negative(y), -angle, angle), call.inputs[0].dtype())};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor y = widened(call.inputs[0]), x = widened(call.inputs[1]);
  const Tensor square = x * x + y * y;
  const Tensor scale = select(equal(square, 0.0), 0.0, widened(call.cotangents[0]) / square);
  const DType dtype = call.inputs[0].dtype();
  return {as_dtype(x * scale, dtype), as_dtype(-(y * scale), dtype)};
}

void reference(ReferenceCall& call) {
  for (int64_t i = 0; i < call.outputs[0].elements(); ++i)
    call.outputs[0].put(i, std::atan2(call.inputs[0]->at(i), call.inputs[1]->at(i)));
}

std::vector<Sample> samples() {
  const SampleInput either = SampleInput::normal({DType::f32, {37}});
  return {{.why = "a vector, wider than 16 lanes", .inputs = {either, either}, .attributes = {}},
          given_sample(
              "axes, signed zeros, infinities, NaN",
              {{0, 0, -0.0, -0.0, 1, -1, 0, -0.0, HUGE_VAL, -HUGE_VAL, 1, -1, 2, std::nan("")},
               {0, -0.0, 0, -0.0, 0, 0, -1, -1, HUGE_VAL, -HUGE_VAL, -HUGE_VAL, HUGE_VAL, -2, 1}})};
}

const OpRegistrar atan2_op(OpDef{.name = "atan2",
                                 .summary = "the angle of the point (x, y), radians",
                                 .tags = Tag::composite,
                                 .infer = infer_floating_binary,
                                 .vjp = vjp,
                                 .decompose = decompose,
                                 .reference = reference,
                                 .samples = samples,
                                 .error_samples = floating_binary_errors});

}  // namespace

Tensor arc_tangent(Tensor x) {
  const Tensor a = abs(x);
  const Tensor far = greater(a, 1 + std::numbers::sqrt2), middle = greater(a, 0.66);
  const Tensor reduced = select(far, -1.0 / a, select(middle, (a - 1.0) / (a + 1.0), a));
  const Tensor z = reduced * reduced;
  const Tensor numerator = polynomial(z, -8.750608600031904122785e-1,
                                      {-1.615753718733365076637e1, -7.500855792314704667340e1,
                                       -1.228866684490136173410e2, -6.485021904942025371773e1});
  const Tensor denominator =
      polynomial(z, 1,
                 {2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                  4.853903996359136964868e2, 1.945506571482613964425e2});
  const Tensor angle = reduced + reduced * (z * numerator / denominator);
  const Tensor sum =
      select(far, kPi / 2, select(middle, kPi / 4, full(x.builder(), x.type(), 0))) + angle;
  return select(less(x, 0.0), -sum, sum);
}

Tensor atan2(Operand y, Operand x) {
  return apply_broadcast("atan2", std::vector{y, x}, {"y", "x"});
}

// --- functions without a rule of their own ------------------------------------------------------
Tensor fmod(Operand a, Operand b) {
  const SourceLoc loc = a.loc;
  if (a.is_number && !b.is_number)
    a = {full(b.tensor.builder(), b.tensor.type(), a.number, loc), loc};
  const Tensor rest =
      remainder({abs(a.tensor, loc), loc},
                b.is_number ? Operand(std::abs(b.number), loc) : Operand(abs(b.tensor, loc), loc));
  const Tensor negative = less(a, {0.0, loc});
  return select(broadcast_to(negative, rest.shape(), loc), {neg(rest, loc), loc}, {rest, loc});
}

Tensor trunc(Tensor x, SourceLoc loc) {
  require_tensor("trunc", "x", x, loc);
  return select(less({x, loc}, {0.0, loc}), {ceil(x, loc), loc}, {floor(x, loc), loc});
}
Tensor is_nan(Tensor x, SourceLoc loc) {
  require_tensor("is_nan", "x", x, loc);
  return not_equal({x, loc}, {x, loc});
}
Tensor is_inf(Tensor x, SourceLoc loc) {
  require_tensor("is_inf", "x", x, loc);
  return equal({abs(x, loc), loc}, {HUGE_VAL, loc});
}
Tensor nan_to_num(Tensor x, double nan, SourceLoc loc) {
  require_tensor("nan_to_num", "x", x, loc);
  const double largest = dtype_largest(x.dtype());
  const Tensor numbers = select(is_nan(x, loc), {nan, loc}, {x, loc});
  return clamp(numbers, -largest, largest, loc);
}
Tensor reciprocal(Tensor x, SourceLoc loc) {
  require_tensor("reciprocal", "x", x, loc);
  return div({1.0, loc}, {x, loc});
}
Tensor square(Tensor x, SourceLoc loc) {
  require_tensor("square", "x", x, loc);
  return mul({x, loc}, {x, loc});
}

}  // namespace fullbore
