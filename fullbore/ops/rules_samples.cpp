#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

struct SampleShape {
  const char* why;
  Shape shape;
};

const std::vector<SampleShape>& elementwise_shapes() {
  static const std::vector<SampleShape> shapes = {
      {"a scalar", {}},
      {"no elements", {0}},
      {"one element", {1}},
      {"odd, rank 2", {3, 5}},
      {"one below 16 lanes", {15}},
      {"16 lanes", {16}},
      {"one above 16 lanes", {17}},
      {"one below 32", {31}},
      {"one above 32", {33}},
      {"one below 128", {127}},
      {"one above 128", {129}},
      {"no rows of some columns", {0, 4}},
      {"rank 4", {2, 3, 2, 7}},
  };
  return shapes;
}

std::vector<ErrorSample> unary_errors(DType wrong, std::string message) {
  return {{"a dtype that it is not defined for", {{wrong, {4}}}, {}, std::move(message)},
          {"no operand", {}, {}, "needs 1 operands, got 0"}};
}

std::vector<ErrorSample> binary_errors(DType right, DType other, DType wrong, std::string message) {
  const TensorType good{right, {4}};
  return {
      {"a dtype that it is not defined for", {{wrong, {4}}, {wrong, {4}}}, {}, std::move(message)},
      {"two dtypes", {good, {other, {4}}}, {}, "differ in dtype"},
      {"two shapes", {good, {right, {5}}}, {}, "differ in shape"},
      {"one operand", {good}, {}, "needs 2 operands, got 1"}};
}

}  // namespace

std::vector<Sample> elementwise_samples(const std::vector<SampleInput>& operands,
                                        const Attributes& attributes) {
  std::vector<Sample> samples;
  for (const SampleShape& each : elementwise_shapes()) {
    Sample sample{.why = each.why, .inputs = operands, .attributes = attributes};
    for (SampleInput& input : sample.inputs) input.type.shape = each.shape;
    samples.push_back(std::move(sample));
  }
  return samples;
}

Sample given_sample(std::string why, const std::vector<std::vector<double>>& operands,
                    Attributes attributes) {
  Sample sample{.why = std::move(why), .inputs = {}, .attributes = std::move(attributes)};
  for (const std::vector<double>& values : operands)
    sample.inputs.push_back(
        SampleInput::given({DType::f32, Shape{static_cast<int64_t>(values.size())}}, values));
  sample.gradcheck = false;
  return sample;
}

std::vector<Sample> with(std::vector<Sample> samples, std::vector<Sample> more) {
  samples.insert(samples.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  return samples;
}

std::vector<ErrorSample> floating_unary_errors() {
  return unary_errors(DType::i32, "needs floating x, got i32[4]");
}
std::vector<ErrorSample> numeric_unary_errors() {
  return unary_errors(DType::boolean, "needs numeric x, got bool[4]");
}
std::vector<ErrorSample> floating_binary_errors() {
  return binary_errors(DType::f32, DType::bf16, DType::i32, "needs floating a, got i32[4]");
}
std::vector<ErrorSample> numeric_binary_errors() {
  return binary_errors(DType::f32, DType::i32, DType::boolean, "needs numeric a, got bool[4]");
}
std::vector<ErrorSample> integer_binary_errors() {
  return binary_errors(DType::i32, DType::i64, DType::f32, "needs integer a, got f32[4]");
}
std::vector<ErrorSample> boolean_binary_errors() {
  return binary_errors(DType::boolean, DType::u8, DType::i32, "needs bool a, got i32[4]");
}

}  // namespace fullbore
