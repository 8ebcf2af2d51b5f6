#include <cmath>
#include <limits>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"
#include "fullbore/ops/softmax.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "logits", DTypeSet::floating);
  require_rank_at_least(call, 0, "logits", 1);
  require_dtype(call, 1, "targets", DTypeSet::integer);
  const TensorType& logits = call.inputs[0];
  const TensorType& targets = call.inputs[1];
  const int axis = logits.shape.rank() - 1;
  if (logits.shape[axis] == 0)
    call.fail(fmt::format("{} has no classes", operand_text("logits", logits)));
  if (targets.shape != logits.shape.without(axis))
    call.fail(fmt::format("{} needs a target for each row, got {}", operand_text("logits", logits),
                          operand_text("targets", targets)));
  return {{compute_dtype(logits.dtype), targets.shape}};
}

// Is a row's target one of its classes? The others are ignored: padding, prompts.
Tensor counted_rows(Tensor targets, int64_t classes) {
  const Tensor wide = as_dtype(targets, DType::i64);
  return logical_and(greater_equal(wide, 0.0), less(wide, static_cast<double>(classes)));
}

// log(sum(exp(x - max))) - (x[target] - max), both small: log_sum_exp(x) - x[target] would lose the
// digits that large logits have in common. The select, not a product with 0, makes an ignored row's
// loss 0 even where its logits are not finite.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor logits = widened(call.inputs[0]);
  const Tensor targets = call.inputs[1];
  const int axis = logits.rank() - 1;
  const Exponentials e = exponentials(logits, axis);
  const Tensor taken = take_along_axis(e.shifted, expand_dims(targets, axis), axis);
  const Tensor loss = squeeze(log(nonzero_sum(e)) - taken, axis);
  return {select(counted_rows(targets, logits.dim(axis)), loss, 0.0)};
}

// dx = (softmax(x) - one_hot(target)) dloss, 0 in ignored rows. The softmax is made anew from the
// logits: saving it would double what the largest tensor of a language model costs.
std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  const Tensor logits = call.inputs[0];
  const Tensor targets = call.inputs[1];
  const int axis = logits.rank() - 1;
  const int64_t classes = logits.dim(axis);
  const Tensor share = softmax(widened(logits), axis);
  const Tensor hit = one_hot(targets, classes, share.dtype());
  const Tensor slope = (share - hit) * expand_dims(call.cotangents[0], axis);
  const Tensor counted = expand_dims(counted_rows(targets, classes), axis);
  return {as_dtype(select(counted, slope, 0.0), logits.dtype()), {}};
}

// Independent of the decomposition: the definition in plain loops.
void reference(ReferenceCall& call) {
  const std::vector<double>& x = call.inputs[0]->reals();
  const std::vector<int64_t>& targets = call.inputs[1]->integers();
  const AxisView rows(call.inputs[0]->shape(), call.inputs[0]->shape().rank() - 1);
  for (int64_t row = 0; row < rows.outer; ++row) {
    const int64_t target = targets[static_cast<size_t>(row)];
    if (target < 0 || target >= rows.extent) continue;
    const auto at = [&](int64_t i) { return x[static_cast<size_t>(row * rows.extent + i)]; };
    // Relative to the target's logit: -log(1 / sum(exp(x[i] - x[target]))), by the largest term.
    double largest = at(0);
    for (int64_t i = 1; i < rows.extent; ++i)
      if (std::isnan(at(i)) || at(i) > largest) largest = at(i);
    double sum = 0;
    for (int64_t i = 0; i < rows.extent; ++i) sum += std::exp(at(i) - largest);
    call.outputs[0].reals()[static_cast<size_t>(row)] =
        largest == -std::numeric_limits<double>::infinity()
            ? std::numeric_limits<double>::infinity()
            : std::log(sum) + (largest - at(target));
  }
}

std::vector<Sample> samples() {
  const auto random = [](const char* why, Shape logits, DType index_dtype) {
    const Shape rows = logits.without(logits.rank() - 1);
    const auto classes = static_cast<double>(logits[logits.rank() - 1]);
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(logits)}),
                             SampleInput::integers({index_dtype, rows}, 0, classes)},
                  .attributes = {}};
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      random("rows, odd", {3, 5}, DType::i32),
      random("one row", {7}, DType::i64),
      random("one class: no loss", {4, 1}, DType::i32),
      random("batch and time", {2, 3, 65}, DType::i32),
      random("one above 128", {2, 129}, DType::i64),
      random("one above 1024, bytes", {2, 1025}, DType::u8),
      random("no rows", {0, 5}, DType::i32),
      {.why = "targets out of range are ignored",
       .inputs = {SampleInput::normal({DType::f32, {5, 4}}),
                  SampleInput::given({DType::i64, {5}}, {-1, 0, 3, 4, -100}).constant()},
       .attributes = {}},
      {.why = "logits beyond overflow and underflow, right and wrong",
       .inputs = {SampleInput::given({DType::f32, {4, 3}}, {1000, 0, -1000, 1000, 0, -1000, -1000,
                                                            -1000, -1001, 1e4, 9999, 1e4}),
                  SampleInput::given({DType::i32, {4}}, {0, 2, 1, 1}).constant()},
       .attributes = {},
       .gradcheck = false},
      {.why = "every class masked: an infinite loss",
       .inputs = {SampleInput::given({DType::f32, {1, 2}}, {-kInfinity, -kInfinity}),
                  SampleInput::given({DType::i32, {1}}, {1}).constant()},
       .attributes = {},
       .gradcheck = false},
      {.why = "masked classes; ignored rows that are not finite",
       .inputs = {SampleInput::given({DType::f32, {3, 3}},
                                     {-kInfinity, 1, 2, NAN, 1, 2, kInfinity, 1, 2}),
                  SampleInput::given({DType::i32, {3}}, {1, -1, 3}).constant()},
       .attributes = {},
       .gradcheck = false},
  };
}

std::vector<ErrorSample> errors() {
  return {{"a target too many",
           {{DType::f32, {3, 5}}, {DType::i32, {4}}},
           {},
           "logits f32[3,5] needs a target for each row, got targets i32[4]"},
          {"targets as probabilities",
           {{DType::f32, {3, 5}}, {DType::f32, {3}}},
           {},
           "needs integer targets, got f32[3]"},
          {"no classes", {{DType::f32, {3, 0}}, {DType::i32, {3}}}, {}, "has no classes"},
          {"integer logits",
           {{DType::i32, {3, 5}}, {DType::i32, {3}}},
           {},
           "needs floating logits, got i32[3,5]"},
          {"a scalar", {{DType::f32, {}}, {DType::i32, {}}}, {}, "rank 1 or more, got f32[]"}};
}

const OpRegistrar cross_entropy_op(OpDef{
    .name = "cross_entropy",
    .summary = "-log softmax(logits)[target] per row; 0 for targets out of range",
    .tags = Tag::composite,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor cross_entropy(Tensor logits, Tensor targets, SourceLoc loc) {
  require_tensor("cross_entropy", "logits", logits, loc);
  require_tensor("cross_entropy", "targets", targets, loc);
  return apply("cross_entropy", {logits, targets}, {}, loc);
}

}  // namespace fullbore
