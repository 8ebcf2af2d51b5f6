#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  if (!call.body) call.fail("needs a body");
  const Graph& body = *call.body;
  if (body.inputs().size() != call.inputs.size())
    call.fail(fmt::format("{} operands for the {} inputs of its body", call.inputs.size(),
                          body.inputs().size()));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorType& taken = body.type(body.inputs()[i].value);
    if (taken != call.inputs[i])
      call.fail(fmt::format("operand {} is {}, the body takes {}", i, call.inputs[i].text(),
                            taken.text()));
  }
  std::vector<TensorType> types;
  for (const Graph::Output& output : body.outputs()) types.push_back(body.type(output.value));
  return types;
}

using Write = std::vector<Tensor> (*)(const std::vector<Tensor>&);

Sample traced(std::string why, const std::vector<Shape>& shapes, Write write) {
  GraphBuilder builder("fused");
  std::vector<Tensor> inputs;
  Sample sample{.why = std::move(why), .inputs = {}, .attributes = {}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TensorType type{DType::f32, shapes[i]};
    inputs.push_back(builder.input(fmt::format("x{}", i), Role::local, type));
    sample.inputs.push_back(SampleInput::normal(type));
  }
  const std::vector<Tensor> outputs = write(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) builder.output(fmt::format("y{}", i), outputs[i]);
  sample.body = std::make_shared<const Graph>(builder.take());
  return sample;
}

std::vector<Tensor> bias_and_tanh(const std::vector<Tensor>& in) {
  return {tanh(add(in[0], in[1]))};
}
std::vector<Tensor> two_results(const std::vector<Tensor>& in) {
  const Tensor product = mul(in[0], in[1]);
  return {product, exp(neg(product))};
}
std::vector<Tensor> centred_rows(const std::vector<Tensor>& in) {
  const double count = static_cast<double>(in[0].dim(-1));
  return {sub(in[0], div(reduce_sum(in[0], {-1}, true), count))};
}
std::vector<Tensor> scaled_rows(const std::vector<Tensor>& in) {
  const Tensor e = exp(sub(in[0], reduce_max(in[0], {-1}, true)));
  return {div(e, reduce_sum(e, {-1}, true))};
}

std::vector<Sample> samples() {
  return {traced("a chain of one operation per element", {{3, 17}, {17}}, bias_and_tanh),
          traced("two results", {{129}, {129}}, two_results),
          traced("one element", {{1}, {1}}, two_results),
          traced("no elements", {{0}, {0}}, two_results),
          traced("a sum of each row within the chain", {{5, 33}}, centred_rows),
          traced("two sweeps over each row", {{4, 130}}, scaled_rows)};
}

std::vector<ErrorSample> errors() { return {{"no body", {{DType::f32, {3}}}, {}, "needs a body"}}; }

const OpRegistrar fused_op(OpDef{
    .name = "fused",
    .summary = "the nodes of its body as one kernel",
    .tags = Tag::region,
    .infer = infer,
    .samples = samples,
    .error_samples = errors,
});

}  // namespace

std::vector<Tensor> fused(GraphBuilder& builder, std::span<const Tensor> inputs,
                          std::shared_ptr<const Graph> body, SourceLoc loc) {
  for (size_t i = 0; i < inputs.size(); ++i)
    require_tensor("fused", fmt::format("operand {}", i), inputs[i], loc);
  return builder.emit(get_op("fused"), inputs, {}, loc, std::move(body));
}

}  // namespace fullbore
