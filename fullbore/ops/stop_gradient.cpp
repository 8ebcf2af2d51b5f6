#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  OperandNames::note("x", call.inputs[0]);
  return {call.inputs[0]};
}

void reference(ReferenceCall& call) { call.outputs[0] = *call.inputs[0]; }

std::vector<Sample> samples() {
  return {{.why = "floats",
           .inputs = {SampleInput::normal({DType::f32, {3, 5}}).constant()},
           .attributes = {}},
          {.why = "no elements",
           .inputs = {SampleInput::normal({DType::f32, {0}}).constant()},
           .attributes = {}},
          {.why = "integers",
           .inputs = {SampleInput::integers({DType::i64, {4}}, -9, 9)},
           .attributes = {}}};
}

std::vector<ErrorSample> error_samples() {
  return {{"no operand", {}, {}, "needs 1 operands, got 0"}};
}

const OpRegistrar registrar(OpDef{.name = "stop_gradient",
                                  .summary = "x itself; cotangents end here",
                                  .tags = Tag::identity | Tag::zero_gradient,
                                  .infer = infer,
                                  .reference = reference,
                                  .samples = samples,
                                  .error_samples = error_samples});

}  // namespace

Tensor stop_gradient(Tensor x, SourceLoc loc) { return apply("stop_gradient", {x}, {}, loc); }

}  // namespace fullbore
