#include "fullbore/ops/compose.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Operands r, k, v, log_decay, bonus, initial, [resets]: those of a linear recurrence that reads the state
// before it takes the token in.
Attributes inner(const Attributes& attributes) {
  return recurrence_attributes(attributes.get<int64_t>("chunk"), false,
                               attributes.get<bool>("resets"));
}

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 6, 7);
  require_attribute<int64_t>(call, "chunk");
  require_attribute<bool>(call, "resets");
  const Attributes attributes = inner(call.attributes);
  require_rank(call, 1, "k", 4);
  require_rank(call, 3, "log-decays", 4);
  // One decay for a head is another recurrence, though it would fit.
  if (call.inputs[3].shape[3] != call.inputs[1].shape[3])
    call.fail(fmt::format("{} and {} differ in keys", operand_text("k", call.inputs[1]),
                          operand_text("log-decays", call.inputs[3])));
  return get_op("linear_recurrence").infer({call.op, call.inputs, attributes, call.body, call.loc});
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  return apply_all("linear_recurrence", call.inputs, inner(call.attributes), call.loc);
}

std::vector<Sample> samples() {
  std::vector<Sample> made;
  for (Sample sample : linear_recurrence_samples()) {
    const Shape& k = sample.inputs[1].type.shape;
    if (sample.attributes.get<bool>("inclusive")) continue;
    if (sample.inputs[3].type.shape[3] != k[3]) continue;
    sample.attributes = {{"chunk", sample.attributes.get<int64_t>("chunk")},
                         {"resets", sample.attributes.get<bool>("resets")}};
    made.push_back(std::move(sample));
  }
  return made;
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const TensorType r = f32({2, 5, 4, 3}), v = f32({2, 5, 4, 6}), u = f32({4, 3});
  const TensorType state = f32({2, 4, 3, 6});
  const Attributes attributes{{"chunk", int64_t{16}}, {"resets", false}};
  return {
      {"one decay for a head",
       {r, r, v, f32({2, 5, 4, 1}), u, state},
       attributes,
       "k f32[2,5,4,3] and log-decays f32[2,5,4,1] differ in keys"},
      {"a bonus for all heads",
       {r, r, v, r, f32({3}), state},
       attributes,
       "needs the bonus f32[4,3], got f32[3]"},
      {"no state", {r, r, v, r, u}, attributes, "needs 6 to 7 operands, got 5"},
  };
}

const OpRegistrar wkv6_op(OpDef{
    .name = "wkv6",
    .summary =
        "RWKV-6 time mixing: a matrix as state, a decay for each key, a bonus for the token itself",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .samples = samples,
    .error_samples = error_samples,
});

}  // namespace

RecurrenceResult wkv6(Tensor r, Tensor k, Tensor v, Tensor log_decay, Tensor bonus,
                      RecurrenceOptions options, SourceLoc loc) {
  constexpr std::string_view kNames[] = {"r", "k", "v", "log_decay", "bonus"};
  std::vector<Tensor> operands = {r, k, v, log_decay, bonus};
  for (size_t i = 0; i < operands.size(); ++i) require_tensor("wkv6", kNames[i], operands[i], loc);
  if (!options.initial.valid() && k.rank() == 4 && v.rank() == 4)
    options.initial =
        full(innermost_builder("wkv6", operands, loc),
             {compute_dtype(v.dtype()), {v.dim(0), v.dim(2), k.dim(3), v.dim(3)}}, 0, loc);
  if (options.initial.valid()) operands.push_back(options.initial);
  if (options.resets.valid()) operands.push_back(options.resets);
  const std::vector<Tensor> made = apply_all(
      "wkv6", operands, {{"chunk", options.chunk}, {"resets", options.resets.valid()}}, loc);
  return {made[0], made[1]};
}

}  // namespace fullbore
