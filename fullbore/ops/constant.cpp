#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// constant: attributes dtype, shape [extents], values [doubles, row-major]. Integers beyond 2^53
// cannot be written exactly.
// iota: attributes dtype, shape [extents], axis.
const OpRegistrar constant_op(OpDef{
    .name = "constant",
    .summary = "values given element by element",
    .tags = Tag::source | Tag::zero_gradient,
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      require_inputs(call, 0);
      const TensorType type{require_attribute<DType>(call, "dtype"), require_shape_attribute(call)};
      const auto& values = require_attribute<std::vector<double>>(call, "values");
      if (static_cast<int64_t>(values.size()) != type.elements())
        call.fail(fmt::format("{} values for {}", values.size(), type.text()));
      return {type};
    },
    .cost = copy_cost,
    .reference =
        [](ReferenceCall& call) {
          const auto& values = call.attributes.get<std::vector<double>>("values");
          for (size_t i = 0; i < values.size(); ++i)
            call.outputs[0].put(static_cast<int64_t>(i), values[i]);
          call.outputs[0].round();
        },
    .samples = []() -> std::vector<Sample> {
      const auto sample = [](std::string why, DType dtype, std::vector<int64_t> shape,
                             std::vector<double> values) {
        return Sample{
            .why = std::move(why),
            .inputs = {},
            .attributes = {
                {"dtype", dtype}, {"shape", std::move(shape)}, {"values", std::move(values)}}};
      };
      return {sample("a scalar", DType::f32, {}, {0.1}),
              sample("no elements", DType::f32, {2, 0}, {}),
              sample("a small table", DType::f32, {2, 3}, {1, -2, 0.5, 0, 1e-3, 3}),
              sample("integers, negative too", DType::i64, {3}, {-1, 0, 1e15}),
              sample("bytes", DType::u8, {2}, {0, 255}),
              sample("truth values", DType::boolean, {2}, {0, 1})};
    },
    .error_samples = []() -> std::vector<ErrorSample> {
      return {
          {"too few values",
           {},
           {{"dtype", DType::f32},
            {"shape", std::vector<int64_t>{2}},
            {"values", std::vector<double>{1}}},
           "1 values for f32[2]"},
          {"a negative extent",
           {},
           {{"dtype", DType::f32},
            {"shape", std::vector<int64_t>{-2}},
            {"values", std::vector<double>{}}},
           "negative extent in shape [-2]"},
          {"more elements than can be counted",
           {},
           {{"dtype", DType::f32},
            {"shape", std::vector<int64_t>{1 << 30, 1 << 30}},
            {"values", std::vector<double>{}}},
           "more than 2^48 elements"},
          {"an attribute is missing", {}, {{"dtype", DType::f32}}, "needs attribute 'shape'"},
          {"an operand", {{DType::f32, {}}}, {{"dtype", DType::f32}}, "needs 0 operands, got 1"}};
    },
});

const OpRegistrar iota_op(OpDef{
    .name = "iota",
    .summary = "0, 1, 2, ... along an axis",
    .tags = Tag::source | Tag::zero_gradient,
    .infer = [](const OpCall& call) -> std::vector<TensorType> {
      require_inputs(call, 0);
      const TensorType type{require_attribute<DType>(call, "dtype"), require_shape_attribute(call)};
      require_axis(call, require_attribute<int64_t>(call, "axis"), "result", type);
      if (!contains(DTypeSet::numeric, type.dtype))
        call.fail(fmt::format("needs a numeric dtype, got {}", dtype_name(type.dtype)));
      return {type};
    },
    .cost = copy_cost,
    .reference =
        [](ReferenceCall& call) {
          Literal& output = call.outputs[0];
          const auto axis = static_cast<size_t>(call.attributes.get<int64_t>("axis"));
          for_each_index(output.shape(), [&](const std::vector<int64_t>& index, int64_t flat) {
            output.put(flat, static_cast<double>(index[axis]));
          });
          output.round();  // u8 wraps after 255
        },
    .samples = []() -> std::vector<Sample> {
      const auto sample = [](std::string why, DType dtype, std::vector<int64_t> shape,
                             int64_t axis) {
        return Sample{
            .why = std::move(why),
            .inputs = {},
            .attributes = {{"dtype", dtype}, {"shape", std::move(shape)}, {"axis", axis}}};
      };
      return {sample("one axis", DType::f32, {129}, 0),
              sample("the outer axis", DType::f32, {5, 3}, 0),
              sample("the inner axis", DType::f32, {5, 33}, 1),
              sample("a middle axis", DType::i64, {2, 3, 4}, 1),
              sample("no elements", DType::i32, {0, 4}, 1),
              sample("one element", DType::i32, {1}, 0),
              sample("bytes that wrap", DType::u8, {300}, 0)};
    },
    .error_samples = []() -> std::vector<ErrorSample> {
      return {
          {"an axis that is not there",
           {},
           {{"dtype", DType::f32}, {"shape", std::vector<int64_t>{2, 3}}, {"axis", int64_t{2}}},
           "axis 2 out of range [-2, 1] for result f32[2,3]"},
          {"no axes",
           {},
           {{"dtype", DType::f32}, {"shape", std::vector<int64_t>{}}, {"axis", int64_t{0}}},
           "axis 0 of result f32[], which has no axes"},
          {"truth values",
           {},
           {{"dtype", DType::boolean}, {"shape", std::vector<int64_t>{2}}, {"axis", int64_t{0}}},
           "needs a numeric dtype, got bool"}};
    },
});

}  // namespace

Tensor constant(GraphBuilder& builder, TensorType type, std::vector<double> values, SourceLoc loc) {
  for (double& value : values) value = round_to_dtype(value, type.dtype);
  Attributes attributes{
      {"dtype", type.dtype}, {"shape", type.shape.dims()}, {"values", std::move(values)}};
  return builder.emit_one("constant", {}, std::move(attributes), loc);
}

Tensor full(GraphBuilder& builder, TensorType type, double value, SourceLoc loc) {
  const Tensor scalar = number_tensor("full", builder, type.dtype, value, loc);
  return type.shape.rank() == 0 ? scalar : broadcast_to(scalar, type.shape, loc);
}

Tensor zeros_like(Tensor x, SourceLoc loc) {
  require_tensor("zeros_like", "x", x, loc);
  return full(x.builder(), x.type(), 0, loc);
}

Tensor iota(GraphBuilder& builder, TensorType type, int axis, SourceLoc loc) {
  Attributes attributes{{"dtype", type.dtype},
                        {"shape", type.shape.dims()},
                        {"axis", normal_axis(axis, type.shape.rank())}};
  return builder.emit_one("iota", {}, std::move(attributes), loc);
}

}  // namespace fullbore
