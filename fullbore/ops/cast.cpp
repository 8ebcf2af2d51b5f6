#include <cmath>

#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute dtype: the result's.
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  OperandNames::note("x", call.inputs[0]);
  return {{require_attribute<DType>(call, "dtype"), call.inputs[0].shape}};
}

// Between floats the cotangent is cast back; an integer on either side is a constant.
std::vector<Tensor> vjp(const VjpCall& call) {
  const DType from = call.inputs[0].dtype();
  if (!is_floating(from) || !is_floating(call.outputs[0].dtype())) return {Tensor{}};
  return {cast(call.cotangents[0], from, call.loc)};
}

// A float keeps its double unless it becomes an integer or a truth value; an integer keeps its 64
// bits unless it becomes a narrower one.
void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  Literal& output = call.outputs[0];
  const DType dtype = output.dtype();
  for (int64_t i = 0; i < output.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (output.floating())
      output.reals()[at] = x.at(i);
    else if (x.floating())
      output.put(i, round_to_dtype(x.reals()[at], dtype));
    else if (dtype == DType::boolean)
      output.integers()[at] = x.integers()[at] != 0;
    else
      output.integers()[at] = evaluate_integer(ScalarOp::cast, dtype, x.integers()[at]);
  }
}

std::vector<Sample> samples() {
  const auto to = [](DType dtype) { return Attributes{{"dtype", dtype}}; };
  const auto sample = [&](std::string why, SampleInput x, DType dtype) {
    const bool real = is_floating(x.type.dtype) && is_floating(dtype);
    // Finite differences see the steps of a 16-bit result.
    return Sample{.why = std::move(why),
                  .inputs = {std::move(x)},
                  .attributes = to(dtype),
                  .gradcheck = real && !is_low_precision(dtype)};
  };
  const TensorType f32{DType::f32, {33}};
  const SampleInput normal = SampleInput::normal(f32);
  const SampleInput wide = SampleInput::uniform(f32, -100, 100);
  const SampleInput truths = SampleInput::integers({DType::boolean, {17}}, 0, 2);
  const SampleInput integers = SampleInput::integers({DType::i32, {17}}, -1000, 1000);
  const SampleInput longs = SampleInput::integers({DType::i64, {17}}, -1e18, 1e18);
  Sample halves =
      given_sample("truncation: halves of both signs, -0, denormals",
                   {{0.5, 1.5, 2.5, -0.5, -1.5, -0.0, 1e-40, 0.999, -0.999, 100}}, to(DType::i32));
  Sample ties = given_sample("halfway between two bf16 values, and values that overflow f16",
                             {{1.00390625, 1.01171875, -1.00390625, 65520, 1e-8, 3.3e38, HUGE_VAL}},
                             to(DType::bf16));
  return with(elementwise_samples({SampleInput::normal({DType::f32, {}})}, to(DType::f32)),
              {sample("to f64", normal, DType::f64),
               sample("to bf16", normal, DType::bf16),
               sample("to f16", normal, DType::f16),
               sample("from f64", SampleInput::normal({DType::f64, {33}}), DType::f32),
               sample("from bf16", SampleInput::normal({DType::bf16, {33}}).constant(), DType::f32),
               sample("floats to i32", wide, DType::i32),
               sample("floats to i64", wide, DType::i64),
               sample("floats to u8", SampleInput::uniform(f32, 0, 255), DType::u8),
               sample("floats to bool", normal, DType::boolean),
               halves,
               ties,
               sample("i32 to floats", integers, DType::f32),
               sample("i32 to u8 wraps", integers, DType::u8),
               sample("i32 to i8 wraps", integers, DType::i8),
               sample("bytes with a sign to floats",
                      SampleInput::integers({DType::i8, {33}}, -128, 128), DType::f32),
               sample("i64 to i32 wraps", longs, DType::i32),
               sample("i64 to bool: not the low bit", longs, DType::boolean),
               sample("i32 to i64", integers, DType::i64),
               sample("bool to floats", truths, DType::f32),
               sample("bool to i32", truths, DType::i32)});
}

std::vector<ErrorSample> error_samples() {
  return {{"no dtype", {{DType::f32, {4}}}, {}, "needs attribute 'dtype'"},
          {"no operand", {}, {{"dtype", DType::f32}}, "needs 1 operands, got 0"}};
}

const OpRegistrar registrar(OpDef{.name = "cast",
                                  .summary = "to another dtype",
                                  .tags = Tag::elementwise,
                                  .scalar = ScalarOp::cast,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor cast(Tensor x, DType dtype, SourceLoc loc) {
  require_tensor("cast", "x", x, loc);
  if (x.dtype() == dtype) return x;
  return apply("cast", {x}, {{"dtype", dtype}}, loc);
}

}  // namespace fullbore
