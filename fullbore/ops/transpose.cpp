#include <fmt/ranges.h>

#include <numeric>

#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Attribute permutation: output axis i is input axis permutation[i].
std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  const TensorType& x = call.inputs[0];
  const auto& permutation = require_attribute<std::vector<int64_t>>(call, "permutation");
  std::vector<bool> seen(static_cast<size_t>(x.shape.rank()), false);
  bool valid = permutation.size() == seen.size();
  std::vector<int64_t> dims;
  for (int64_t axis : permutation) {
    valid = valid && axis >= 0 && axis < x.shape.rank() && !seen[static_cast<size_t>(axis)];
    if (!valid) break;
    seen[static_cast<size_t>(axis)] = true;
    dims.push_back(x.shape[static_cast<int>(axis)]);
  }
  if (!valid)
    call.fail(fmt::format("[{}] is no permutation of the axes of {}", fmt::join(permutation, ","),
                          operand_text("x", x)));
  return {{x.dtype, Shape(std::move(dims))}};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const auto& permutation = call.attributes.get<std::vector<int64_t>>("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {transpose(call.cotangents[0], std::move(inverse), call.loc)};
}

void reference(ReferenceCall& call) {
  const Literal& x = *call.inputs[0];
  const std::vector<int64_t> x_strides = x.shape().strides();
  std::vector<int64_t> strides;
  for (int64_t axis : call.attributes.get<std::vector<int64_t>>("permutation"))
    strides.push_back(x_strides[static_cast<size_t>(axis)]);
  for_each_index(call.outputs[0].shape(), [&](const std::vector<int64_t>& index, int64_t flat) {
    copy_element(call.outputs[0], flat, x, flat_index(index, strides));
  });
}

std::vector<Sample> samples() {
  const auto sample = [](std::string why, SampleInput x, std::vector<int64_t> permutation) {
    return Sample{.why = std::move(why),
                  .inputs = {std::move(x)},
                  .attributes = {{"permutation", std::move(permutation)}}};
  };
  const auto f32 = [](Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); };
  return {sample("a matrix, odd sides", f32({17, 33}), {1, 0}),
          sample("a matrix, whole tiles", f32({32, 16}), {1, 0}),
          sample("the identity", f32({3, 4}), {0, 1}),
          sample("heads: the middle axes", f32({2, 5, 3, 4}), {0, 2, 1, 3}),
          sample("a cycle of three", f32({2, 3, 5}), {1, 2, 0}),
          sample("all axes reversed", f32({2, 3, 4, 5}), {3, 2, 1, 0}),
          sample("a scalar", f32({}), {}),
          sample("no elements", f32({0, 3}), {1, 0}),
          sample("bytes", SampleInput::integers({DType::u8, {3, 5}}, 0, 256), {1, 0}),
          sample("64 bits", SampleInput::integers({DType::i64, {3, 5}}, -1e15, 1e15), {1, 0})};
}

std::vector<ErrorSample> error_samples() {
  const TensorType x{DType::f32, {4, 3}};
  const auto permutation = [](std::vector<int64_t> axes) {
    return Attributes{{"permutation", std::move(axes)}};
  };
  return {
      {"too few axes", {x}, permutation({0}), "[0] is no permutation of the axes of x f32[4,3]"},
      {"an axis twice", {x}, permutation({1, 1}), "[1,1] is no permutation"},
      {"an axis that is not there", {x}, permutation({0, 2}), "[0,2] is no permutation"},
      {"no permutation", {x}, {}, "needs attribute 'permutation'"}};
}

const OpRegistrar registrar(OpDef{.name = "transpose",
                                  .summary = "axes in another order",
                                  .tags = Tag::movement,
                                  .infer = infer,
                                  .vjp = vjp,
                                  .cost = copy_cost,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor transpose(Tensor x, std::vector<int64_t> permutation, SourceLoc loc) {
  require_tensor("transpose", "x", x, loc);
  return apply("transpose", {x}, {{"permutation", normal_axes(std::move(permutation), x.rank())}},
               loc);
}

Tensor swap_axes(Tensor x, int first, int second, SourceLoc loc) {
  require_tensor("swap_axes", "x", x, loc);
  for (int axis : {first, second})
    if (axis < -x.rank() || axis >= x.rank())
      throw UsageError(fmt::format("swap_axes: axis {} out of range [{}, {}] for {}", axis,
                                   -x.rank(), x.rank() - 1, operand_text("x", x.type())),
                       loc);
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[static_cast<size_t>(normal_axis(first, x.rank()))],
            permutation[static_cast<size_t>(normal_axis(second, x.rank()))]);
  return transpose(x, std::move(permutation), loc);
}

}  // namespace fullbore
