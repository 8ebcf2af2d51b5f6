#include <fmt/format.h>

#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/reduce.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

using Axes = std::vector<int64_t>;

std::vector<TensorType> infer_mean(const OpCall& call) {
  std::vector<TensorType> types = infer_reduction(call);
  require_dtype(call, 0, "x", DTypeSet::floating);
  for (int64_t axis : call.attributes.get<Axes>("axes"))
    if (call.inputs[0].shape[static_cast<int>(axis)] == 0)
      call.fail(fmt::format("axis {} of {} is empty: it has no mean", axis,
                            operand_text("x", call.inputs[0])));
  return types;
}

// The sum is taken in f32 or better and divided there: a sum stored as f16 would overflow at 65504,
// and one stored as bf16 would lose what the mean has.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor x = call.inputs[0];
  const Axes& axes = call.attributes.get<Axes>("axes");
  int64_t count = 1;
  for (int64_t axis : axes) count *= x.shape()[static_cast<int>(axis)];
  return {as_dtype(reduce_sum(widened(x), axes) / static_cast<double>(count), x.dtype())};
}

std::vector<Sample> samples() {
  std::vector<Sample> samples = reduction_samples(SampleInput::normal({DType::f32, {}}), false);
  samples.push_back({.why = "a sum beyond the largest f16",
                     .inputs = {SampleInput::uniform({DType::f32, {300}}, 900, 1000)},
                     .attributes = {{"axes", Axes{0}}}});
  return samples;
}

std::vector<ErrorSample> errors() {
  return {{"integers", {{DType::i32, {4}}}, {{"axes", Axes{0}}}, "needs floating x, got i32[4]"},
          {"a mean of nothing",
           {{DType::f32, {3, 0}}},
           {{"axes", Axes{1}}},
           "axis 1 of x f32[3,0] is empty"},
          {"an axis beyond the last",
           {{DType::f32, {8, 4, 2}}},
           {{"axes", Axes{3}}},
           "axis 3 out of range [-3, 2] for x f32[8,4,2]"}};
}

const OpRegistrar reduce_mean_op(OpDef{
    .name = "reduce_mean",
    .summary = "mean along axes, which are removed",
    .tags = Tag::composite,
    .infer = infer_mean,
    .decompose = decompose,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor reduce_mean(Tensor x, std::vector<int64_t> axes, bool keep_dims, SourceLoc loc) {
  require_tensor("reduce_mean", "x", x, loc);
  if (axes.empty() && x.rank() > 0)  // would be x itself: whoever says so means all axes
    throw UsageError(fmt::format("reduce_mean: needs at least one axis of {}", x.type().text()),
                     loc);
  return apply_reduction("reduce_mean", x, std::move(axes), keep_dims, loc);
}

}  // namespace fullbore
