#include <limits>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "indices", DTypeSet::integer);
  const int64_t classes = require_attribute<int64_t>(call, "classes");
  if (classes < 0) call.fail(fmt::format("cannot have {} classes", classes));
  const Shape& indices = call.inputs[0].shape;
  const Shape shape = indices.inserted(indices.rank(), classes);
  require_elements(call, shape);
  return {{require_attribute<DType>(call, "dtype"), shape}};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const int64_t classes = call.attributes.get<int64_t>("classes");
  // Not in the indices' dtype, which need not hold every class; in i32 where that does, for the
  // comparison is made once per element of the largest tensor of a language model.
  const bool narrow =
      call.inputs[0].dtype() != DType::i64 && classes <= std::numeric_limits<int32_t>::max();
  const DType counter = narrow ? DType::i32 : DType::i64;
  const Tensor indices = as_dtype(call.inputs[0], counter);
  const Shape shape = indices.shape().inserted(indices.rank(), classes);
  const Tensor number = iota(indices.builder(), {counter, shape}, indices.rank());
  const Tensor hit = equal(expand_dims(indices, -1), number);
  return {as_dtype(hit, call.attributes.get<DType>("dtype"))};
}

Attributes attributes(int64_t classes, DType dtype) {
  return {{"classes", classes}, {"dtype", dtype}};
}

std::vector<Sample> samples() {
  const auto of = [](const char* why, TensorType indices, int64_t classes, DType dtype) {
    return Sample{
        .why = why,
        .inputs = {SampleInput::integers(std::move(indices), -1, static_cast<double>(classes + 1))},
        .attributes = attributes(classes, dtype)};
  };
  return {of("rows, some out of range", {DType::i32, {9}}, 5, DType::f32),
          of("two axes, i64", {DType::i64, {3, 4}}, 17, DType::f32),
          of("one index", {DType::i32, {}}, 3, DType::f32),
          of("truth values", {DType::i32, {4}}, 6, DType::boolean),
          of("counts", {DType::i32, {4}}, 6, DType::i64),
          of("no indices", {DType::i32, {0}}, 6, DType::f32),
          of("no classes", {DType::i32, {3}}, 0, DType::f32),
          {.why = "bytes, more classes than they can name",
           .inputs = {SampleInput::integers({DType::u8, {5}}, 0, 256)},
           .attributes = attributes(300, DType::f32)}};
}

std::vector<ErrorSample> errors() {
  return {{"indices that are no integers",
           {{DType::f32, {3}}},
           attributes(4, DType::f32),
           "needs integer indices, got f32[3]"},
          {"a negative number of classes",
           {{DType::i32, {3}}},
           attributes(-2, DType::f32),
           "cannot have -2 classes"}};
}

const OpRegistrar one_hot_op(OpDef{
    .name = "one_hot",
    .summary = "1 at the index, 0 elsewhere, along a new last axis",
    .tags = Tag::composite | Tag::zero_gradient,
    .infer = infer,
    .decompose = decompose,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

Tensor one_hot(Tensor indices, int64_t classes, DType dtype, SourceLoc loc) {
  require_tensor("one_hot", "indices", indices, loc);
  return apply("one_hot", {indices}, attributes(classes, dtype), loc);
}

}  // namespace fullbore
