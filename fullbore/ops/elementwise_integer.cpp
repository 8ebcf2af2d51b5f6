#include "fullbore/ops/rules.h"

/// Bits of integers, no attributes, no gradients.
namespace fullbore {
namespace {

std::vector<Sample> bit_samples() {
  const SampleInput longs = SampleInput::integers({DType::i64, {}}, -1e18, 1e18);
  const SampleInput ints =
      SampleInput::integers({DType::i32, {3, 11}}, -2147483648.0, 2147483647.0);
  const SampleInput bytes = SampleInput::integers({DType::u8, {33}}, 0, 256);
  return with(elementwise_samples({longs, longs}),
              {{.why = "32 bits", .inputs = {ints, ints}, .attributes = {}},
               {.why = "bytes", .inputs = {bytes, bytes}, .attributes = {}}});
}

std::vector<Sample> shift_samples() {
  const auto sample = [](std::string why, DType dtype, double low, double high) {
    const TensorType type{dtype, {3, 11}};
    return Sample{
        .why = std::move(why),
        .inputs = {SampleInput::integers(type, low, high),
                   SampleInput::integers(type, 0, 8.0 * static_cast<double>(dtype_bytes(dtype)))},
        .attributes = {}};
  };
  const auto edges = [](std::string why, DType dtype, double value, double width) {
    const TensorType type{dtype, {7}};
    return Sample{
        .why = std::move(why),
        .inputs = {SampleInput::given(type, std::vector<double>(7, value)),
                   SampleInput::given(type, {0, 1, width - 1, width, width + 1, 100, 255})},
        .attributes = {}};
  };
  Sample negative{.why = "negative distances give 0",
                  .inputs = {SampleInput::given({DType::i32, {2}}, {-1, 5}),
                             SampleInput::given({DType::i32, {2}}, {-1, -100})},
                  .attributes = {}};
  return with(elementwise_samples({SampleInput::integers({DType::i64, {}}, -1e18, 1e18),
                                   SampleInput::integers({DType::i64, {}}, 0, 64)}),
              {sample("32 bits of both signs", DType::i32, -2147483648.0, 2147483647.0),
               sample("bytes", DType::u8, 0, 256), edges("at and past 64 bits", DType::i64, -1, 64),
               edges("at and past 32 bits", DType::i32, -1, 32),
               edges("at and past 8 bits", DType::u8, 255, 8), negative});
}

const OpRegistrar bit_and_op(OpDef{
    .name = "bit_and",
    .summary = "bits set in both",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::bit_and,
    .infer = infer_integer_binary,
    .samples = bit_samples,
    .error_samples = integer_binary_errors,
    .dtypes = {},
});

const OpRegistrar bit_or_op(OpDef{
    .name = "bit_or",
    .summary = "bits set in either",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::bit_or,
    .infer = infer_integer_binary,
    .samples = bit_samples,
    .error_samples = integer_binary_errors,
    .dtypes = {},
});

const OpRegistrar bit_xor_op(OpDef{
    .name = "bit_xor",
    .summary = "bits set in one of the two",
    .tags = Tag::elementwise | Tag::zero_gradient | Tag::commutative,
    .scalar = ScalarOp::bit_xor,
    .infer = infer_integer_binary,
    .samples = bit_samples,
    .error_samples = integer_binary_errors,
    .dtypes = {},
});

const OpRegistrar shift_left_op(OpDef{
    .name = "shift_left",
    .summary = "bits of a moved up by b; 0 if b is outside [0, width)",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::shift_left,
    .infer = infer_integer_binary,
    .samples = shift_samples,
    .error_samples = integer_binary_errors,
    .dtypes = {},
});

const OpRegistrar shift_right_op(OpDef{
    .name = "shift_right",
    .summary = "bits of a moved down by b, zeros coming in; 0 if b is outside [0, width)",
    .tags = Tag::elementwise | Tag::zero_gradient,
    .scalar = ScalarOp::shift_right,
    .infer = infer_integer_binary,
    .samples = shift_samples,
    .error_samples = integer_binary_errors,
    .dtypes = {},
});

}  // namespace

Tensor bit_and(Operand a, Operand b) { return apply_broadcast("bit_and", std::vector{a, b}); }
Tensor bit_or(Operand a, Operand b) { return apply_broadcast("bit_or", std::vector{a, b}); }
Tensor bit_xor(Operand a, Operand b) { return apply_broadcast("bit_xor", std::vector{a, b}); }
Tensor shift_left(Operand a, Operand b) { return apply_broadcast("shift_left", std::vector{a, b}); }
Tensor shift_right(Operand a, Operand b) {
  return apply_broadcast("shift_right", std::vector{a, b});
}

}  // namespace fullbore
