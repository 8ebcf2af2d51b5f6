#include <cmath>

#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/random.h"

namespace fullbore {
namespace {

constexpr int64_t kElements = int64_t{1} << 32;

std::vector<TensorType> infer_philox(const OpCall& call) {
  require_inputs(call, 3);
  constexpr std::string_view kNames[] = {"key", "counter_low", "counter_high"};
  for (size_t i = 0; i < 3; ++i) {
    OperandNames::note(kNames[i], call.inputs[i]);
    if (call.inputs[i].dtype != DType::i64)
      call.fail(fmt::format("needs i64 {}, got {}", kNames[i], call.inputs[i].text()));
    require_same_shape(call, 0, "key", i, kNames[i]);
  }
  return {call.inputs[0]};
}

std::vector<Sample> samples() {
  const SampleInput bits = SampleInput::integers(kIndex, -9e18, 9e18);
  const TensorType pair{DType::i64, {2}};
  return with(elementwise_samples({bits, bits, bits}),
              {{.why = "all zeros and all ones",
                .inputs = {SampleInput::given(pair, {0, -1}), SampleInput::given(pair, {0, -1}),
                           SampleInput::given(pair, {0, -1})},
                .attributes = {}}});
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::i64, {4}}, other{DType::i64, {5}}, narrow{DType::i32, {4}};
  return {{"a narrow counter", {x, narrow, x}, {}, "needs i64 counter_low, got i32[4]"},
          {"a floating key", {{DType::f32, {4}}, x, x}, {}, "needs i64 key, got f32[4]"},
          {"two shapes", {x, x, other}, {}, "key i64[4] and counter_high i64[5] differ in shape"},
          {"two operands", {x, x}, {}, "needs 3 operands, got 2"}};
}

OpDef philox_op(const char* name, const char* summary, ScalarOp scalar) {
  return {.name = name,
          .summary = summary,
          .tags = Tag::elementwise | Tag::zero_gradient,
          .scalar = scalar,
          .infer = infer_philox,
          .samples = samples,
          .error_samples = error_samples,
          .dtypes = {}};
}

const OpRegistrar lower_half(philox_op(
    "philox", "64 random bits of a key and a 128-bit counter (Philox4x32-10)", ScalarOp::philox));
const OpRegistrar upper_half(philox_op("philox_upper", "the other 64 bits of philox",
                                       ScalarOp::philox_upper));

}  // namespace

// Inputs [..., seed, step, (iteration)] from `first` on; attribute site.
void require_source(const OpCall& call, size_t first) {
  constexpr std::string_view kNames[] = {"seed", "step", "iteration"};
  for (size_t i = first; i < call.inputs.size(); ++i) {
    OperandNames::note(kNames[i - first], call.inputs[i]);
    if (call.inputs[i] != kIndex)
      call.fail(fmt::format("needs an i64 scalar as {}, got {}", kNames[i - first],
                            call.inputs[i].text()));
  }
  const auto site = require_attribute<int64_t>(call, "site");
  if (site < 0 || site >= kSites) call.fail(fmt::format("site {} is not in [0, {})", site, kSites));
}

Shape require_draw(const OpCall& call) {
  require_inputs(call, 2, 3);
  require_source(call, 0);
  Shape shape = require_shape_attribute(call);
  require_drawable(call, shape);
  return shape;
}

void require_drawable(const OpCall& call, const Shape& shape) {
  if (shape.elements() > kElements)
    call.fail(fmt::format("{} has more than 2^32 elements", shape.text()));
}

Tensor draw_bits(std::span<const Tensor> source, int64_t site, const Shape& shape, DrawHalf half) {
  const int64_t count = shape.elements();
  Tensor low = iota(source[0].builder(), {DType::i64, {count}}, 0);
  if (source.size() == 3) low = low + shift_left(source[2], 32.0);
  const Tensor high = source[1] + std::ldexp(static_cast<double>(site), 40);
  const Tensor bits =
      half == DrawHalf::lower ? philox(source[0], low, high) : philox_upper(source[0], low, high);
  return reshape(bits, shape);
}

std::vector<Tensor> source_operands(std::string_view op, const RandomSource& source,
                                    SourceLoc loc) {
  require_tensor(op, "the source's seed", source.seed, loc);
  require_tensor(op, "the source's step", source.step, loc);
  std::vector<Tensor> operands = {source.seed, source.step};
  if (source.iteration.valid()) operands.push_back(source.iteration);
  return operands;
}

Tensor philox(Tensor key, Tensor counter_low, Tensor counter_high, SourceLoc loc) {
  return apply_broadcast("philox",
                         std::vector<Operand>{{key, loc}, {counter_low, loc}, {counter_high, loc}},
                         {"key", "counter_low", "counter_high"});
}

Tensor philox_upper(Tensor key, Tensor counter_low, Tensor counter_high, SourceLoc loc) {
  return apply_broadcast("philox_upper",
                         std::vector<Operand>{{key, loc}, {counter_low, loc}, {counter_high, loc}},
                         {"key", "counter_low", "counter_high"});
}

}  // namespace fullbore
