#include "fullbore/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/ops/rules.h"
#include "fullbore/ops/softmax.h"

namespace fullbore {

Attributes cross_entropy_attributes(const CrossEntropyOptions& options) {
  return {{"label_smoothing", options.label_smoothing},
          {"z_loss", options.z_loss},
          {"ignore_index", options.ignore_index}};
}

CrossEntropyOptions cross_entropy_options(const Attributes& attributes) {
  return {attributes.get<double>("label_smoothing"), attributes.get<double>("z_loss"),
          attributes.get<int64_t>("ignore_index")};
}

void require_cross_entropy_attributes(const OpCall& call) {
  const double smoothing = require_attribute<double>(call, "label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1))
    call.fail(fmt::format("label_smoothing must be in [0, 1), not {}", smoothing));
  const double z_loss = require_attribute<double>(call, "z_loss");
  if (!(z_loss >= 0 && std::isfinite(z_loss)))
    call.fail(fmt::format("z_loss must be finite and not negative, not {}", z_loss));
  require_attribute<int64_t>(call, "ignore_index");
}

Tensor counted_rows(Tensor targets, int64_t classes, const CrossEntropyOptions& options) {
  const Tensor wide = as_dtype(targets, DType::i64);
  const Tensor known =
      logical_and(greater_equal(wide, 0.0), less(wide, static_cast<double>(classes)));
  if (options.ignore_index < 0 || options.ignore_index >= classes) return known;
  return logical_and(known, not_equal(wide, static_cast<double>(options.ignore_index)));
}

namespace {

// log(Z) of logits whose exponentials are known.
Tensor log_normaliser(const Exponentials& e) { return e.shift + log(nonzero_sum(e)); }

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 2);
  require_dtype(call, 0, "logits", DTypeSet::floating);
  require_rank_at_least(call, 0, "logits", 1);
  require_dtype(call, 1, "targets", DTypeSet::integer);
  require_cross_entropy_attributes(call);
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

// log(sum(exp(x - max))) - (x[target] - max), both small: log_sum_exp(x) - x[target] would lose the
// digits that large logits have in common. x[target] is a sum of one term rather than an element that
// is fetched, so that one walk over the row makes all. The selects, not products with 0, make an
// ignored row's loss 0 even where its logits are not finite.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const CrossEntropyOptions options = cross_entropy_options(call.attributes);
  const Tensor logits = widened(call.inputs[0]);
  const Tensor targets = call.inputs[1];
  const int axis = logits.rank() - 1;
  const int64_t classes = logits.dim(axis);
  const Exponentials e = exponentials(logits, axis);
  const Tensor hit = one_hot(targets, classes, DType::boolean);
  Tensor aim = reduce_sum(select(hit, e.shifted, 0.0), {axis}, true);
  if (options.label_smoothing > 0) {
    const double even = options.label_smoothing / static_cast<double>(classes);
    aim = aim * (1 - options.label_smoothing) + reduce_sum(e.shifted, {axis}, true) * even;
  }
  Tensor loss = log(nonzero_sum(e)) - aim;
  if (options.z_loss > 0) {
    const Tensor z = log_normaliser(e);
    loss = loss + z * z * options.z_loss;
  }
  return {select(counted_rows(targets, classes, options), squeeze(loss, axis), 0.0)};
}

// The softmax is made anew from the logits: saving it would double what the largest tensor of a
// language model costs.
std::vector<Tensor> vjp(const VjpCall& call) {
  if (!call.wanted[0]) return {{}, {}};
  const Tensor logits = call.inputs[0];
  const Tensor slopes =
      cross_entropy_slopes(logits, call.inputs[1], cross_entropy_options(call.attributes));
  return {as_dtype(slopes * expand_dims(call.cotangents[0], -1), logits.dtype()), {}};
}

void reference(ReferenceCall& call) {
  const CrossEntropyOptions options = cross_entropy_options(call.attributes);
  const std::vector<int64_t>& targets = call.inputs[1]->integers();
  const AxisView rows(call.inputs[0]->shape(), call.inputs[0]->shape().rank() - 1);
  for (int64_t row = 0; row < rows.outer; ++row)
    call.outputs[0].reals()[static_cast<size_t>(row)] =
        cross_entropy_of_row(call.inputs[0]->reals().data() + row * rows.extent, rows.extent,
                             targets[static_cast<size_t>(row)], options);
}

std::vector<Sample> samples() {
  const auto random = [](const char* why, Shape logits, DType index_dtype) {
    const Shape rows = logits.without(logits.rank() - 1);
    const auto classes = static_cast<double>(logits[logits.rank() - 1]);
    return Sample{.why = why,
                  .inputs = {SampleInput::normal({DType::f32, std::move(logits)}),
                             SampleInput::integers({index_dtype, rows}, 0, classes)},
                  .attributes = cross_entropy_attributes({})};
  };
  const auto with_options = [&](Sample sample, const CrossEntropyOptions& options) {
    sample.attributes = cross_entropy_attributes(options);
    return sample;
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
      with_options(random("smoothed", {4, 7}, DType::i32), {.label_smoothing = 0.125}),
      with_options(random("z-loss", {4, 7}, DType::i32), {.z_loss = 0.5}),
      with_options(random("smoothed, z-loss, a class that is ignored", {9, 3}, DType::i32),
                   {.label_smoothing = 0.25, .z_loss = 0.25, .ignore_index = 1}),
      {.why = "targets out of range are ignored",
       .inputs = {SampleInput::normal({DType::f32, {5, 4}}),
                  SampleInput::given({DType::i64, {5}}, {-1, 0, 3, 4, -100}).constant()},
       .attributes = cross_entropy_attributes({})},
      {.why = "logits beyond overflow and underflow, right and wrong",
       .inputs = {SampleInput::given({DType::f32, {4, 3}}, {1000, 0, -1000, 1000, 0, -1000, -1000,
                                                            -1000, -1001, 1e4, 9999, 1e4}),
                  SampleInput::given({DType::i32, {4}}, {0, 2, 1, 1}).constant()},
       .attributes = cross_entropy_attributes({}),
       .gradcheck = false},
      {.why = "every class masked: an infinite loss",
       .inputs = {SampleInput::given({DType::f32, {1, 2}}, {-kInfinity, -kInfinity}),
                  SampleInput::given({DType::i32, {1}}, {1}).constant()},
       .attributes = cross_entropy_attributes({}),
       .gradcheck = false},
      {.why = "masked classes; ignored rows that are not finite",
       .inputs = {SampleInput::given({DType::f32, {3, 3}},
                                     {-kInfinity, 1, 2, NAN, 1, 2, kInfinity, 1, 2}),
                  SampleInput::given({DType::i32, {3}}, {1, -1, 3}).constant()},
       .attributes = cross_entropy_attributes({}),
       .gradcheck = false},
  };
}

std::vector<ErrorSample> errors() {
  const Attributes plain = cross_entropy_attributes({});
  const std::vector<TensorType> rows = {{DType::f32, {3, 5}}, {DType::i32, {3}}};
  return {{"a target too many",
           {{DType::f32, {3, 5}}, {DType::i32, {4}}},
           plain,
           "logits f32[3,5] needs a target for each row, got targets i32[4]"},
          {"targets as probabilities",
           {{DType::f32, {3, 5}}, {DType::f32, {3}}},
           plain,
           "needs integer targets, got f32[3]"},
          {"no classes", {{DType::f32, {3, 0}}, {DType::i32, {3}}}, plain, "has no classes"},
          {"integer logits",
           {{DType::i32, {3, 5}}, {DType::i32, {3}}},
           plain,
           "needs floating logits, got i32[3,5]"},
          {"a scalar", {{DType::f32, {}}, {DType::i32, {}}}, plain, "rank 1 or more, got f32[]"},
          {"all of the target spread", rows, cross_entropy_attributes({.label_smoothing = 1}),
           "label_smoothing must be in [0, 1), not 1"},
          {"a negative z-loss", rows, cross_entropy_attributes({.z_loss = -1}),
           "z_loss must be finite and not negative, not -1"},
          {"no attributes", rows, {}, "needs attribute 'label_smoothing'"}};
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

Tensor cross_entropy_slopes(Tensor logits, Tensor targets, const CrossEntropyOptions& options) {
  const Tensor x = widened(logits);
  const int axis = x.rank() - 1;
  const int64_t classes = x.dim(axis);
  Tensor slopes = softmax(x, axis);
  if (options.z_loss > 0)
    slopes = slopes * (1.0 + log_normaliser(exponentials(x, axis)) * (2 * options.z_loss));
  const Tensor hit = one_hot(targets, classes, x.dtype());
  slopes = slopes - (options.label_smoothing > 0 ? hit * (1 - options.label_smoothing) : hit);
  if (options.label_smoothing > 0)
    slopes = slopes - options.label_smoothing / static_cast<double>(classes);
  return select(expand_dims(counted_rows(targets, classes, options), axis), slopes, 0.0);
}

// Relative to the target's logit: -log(1 / sum(exp(x[i] - x[target]))), by the largest term.
double cross_entropy_of_row(const double* logits, int64_t classes, int64_t target,
                            const CrossEntropyOptions& options, double* slopes) {
  if (slopes) std::fill(slopes, slopes + classes, 0.0);
  if (target < 0 || target >= classes || target == options.ignore_index) return 0;
  double largest = logits[0];
  for (int64_t i = 1; i < classes; ++i)
    if (std::isnan(logits[i]) || logits[i] > largest) largest = logits[i];
  if (largest == -std::numeric_limits<double>::infinity())
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - largest);
  const double smoothing = options.label_smoothing;
  const double even = smoothing / static_cast<double>(classes);
  double loss = (1 - smoothing) * (std::log(sum) + (largest - logits[target]));
  if (smoothing > 0)
    for (int64_t i = 0; i < classes; ++i) loss += even * (std::log(sum) + (largest - logits[i]));
  const double z = largest + std::log(sum);
  if (options.z_loss > 0) loss += options.z_loss * z * z;
  if (slopes)
    for (int64_t i = 0; i < classes; ++i)
      slopes[i] = std::exp(logits[i] - largest) / sum * (1 + 2 * options.z_loss * z) -
                  (i == target ? 1 - smoothing : 0) - even;
  return loss;
}

Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options, SourceLoc loc) {
  require_tensor("cross_entropy", "logits", logits, loc);
  require_tensor("cross_entropy", "targets", targets, loc);
  return apply("cross_entropy", {logits, targets}, cross_entropy_attributes(options), loc);
}

}  // namespace fullbore
