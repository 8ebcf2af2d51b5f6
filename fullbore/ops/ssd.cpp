#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

// Operands x, dt, a, b, c, skip, initial, [resets].
constexpr size_t kInitial = 6;

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, kInitial + 1, kInitial + 2);
  require_attribute<int64_t>(call, "chunk");
  const bool resets = require_attribute<bool>(call, "resets");
  require_dtype(call, 0, "x", DTypeSet::floating);
  require_rank(call, 0, "x", 4);
  const TensorType& x = call.inputs[0];
  const Shape& shape = x.shape;
  require_operand(call, 1, "dt", {shape[0], shape[1], shape[2]});
  require_operand(call, 2, "a", {shape[2]});
  require_same_dtype(call, 1, "dt", 2, "a");
  require_operand(call, 5, "skip", {shape[2]});
  require_rank(call, 3, "b", 4);
  require_same_shape(call, 3, "b", 4, "c");
  require_same_dtype(call, 3, "b", 4, "c");
  const TensorType decays{call.inputs[1].dtype, {shape[0], shape[1], shape[2], 1}};
  std::vector<TensorType> types = {call.inputs[4], call.inputs[3], x, decays,
                                   call.inputs[kInitial]};
  OperandNames::note("the initial state", call.inputs[kInitial]);
  if (call.inputs.size() > kInitial + 1) {
    OperandNames::note("resets", call.inputs[kInitial + 1]);
    types.push_back(call.inputs[kInitial + 1]);
  }
  const Attributes attributes =
      recurrence_attributes(call.attributes.get<int64_t>("chunk"), true, resets);
  require_inputs(call, kInitial + (resets ? 2 : 1));
  return get_op("linear_recurrence").infer({call.op, types, attributes, call.body, call.loc});
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto& in = call.inputs;
  const Tensor x = in[0];
  const Tensor dt = expand_dims(widened(in[1]), 3);
  const auto per_head = [](Tensor each) { return reshape(widened(each), {1, 1, each.dim(0), 1}); };
  const Tensor taken = as_dtype(widened(x) * dt, x.dtype());
  std::vector<Tensor> operands = {in[4], in[3], taken, dt * per_head(in[2]), in[kInitial]};
  if (in.size() > kInitial + 1) operands.push_back(in[kInitial + 1]);
  const std::vector<Tensor> made =
      apply_all("linear_recurrence", operands,
                recurrence_attributes(call.attributes.get<int64_t>("chunk"), true,
                                      call.attributes.get<bool>("resets")),
                call.loc);
  const Tensor y = widened(made[0]) + per_head(in[5]) * widened(x);
  return {as_dtype(y, x.dtype()), made[1]};
}

struct Extents {
  int64_t batch = 2, tokens = 5, heads = 4, groups = 1, width = 2, states = 3, chunk = 64;
  bool resets = false;
};

Sample sample(std::string why, Extents e) {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const TensorType b = f32({e.batch, e.tokens, e.groups, e.states});
  Sample made{.why = std::move(why),
              .inputs = {SampleInput::normal(f32({e.batch, e.tokens, e.heads, e.width})),
                         SampleInput::uniform(f32({e.batch, e.tokens, e.heads}), 0.05, 0.6),
                         SampleInput::uniform(f32({e.heads}), -4, -1), SampleInput::normal(b),
                         SampleInput::normal(b), SampleInput::normal(f32({e.heads})),
                         SampleInput::normal(f32({e.batch, e.heads, e.states, e.width}))},
              .attributes = {{"chunk", e.chunk}, {"resets", e.resets}}};
  if (e.resets)
    made.inputs.push_back(SampleInput::integers({DType::boolean, {e.batch, e.tokens}}, 0, 1.2));
  return made;
}

std::vector<Sample> samples() {
  return {
      sample("all heads share b and c", {}),
      sample("two groups", {.groups = 2}),
      sample("several chunks, resets within", {.tokens = 19, .chunk = 6, .resets = true}),
      sample("one token, as in decoding", {.tokens = 1}),
      sample("no tokens", {.tokens = 0}),
  };
}

std::vector<ErrorSample> error_samples() {
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  const TensorType x = f32({2, 5, 4, 6}), dt = f32({2, 5, 4}), a = f32({4});
  const TensorType b = f32({2, 5, 1, 3}), state = f32({2, 4, 3, 6});
  const Attributes attributes{{"chunk", int64_t{16}}, {"resets", false}};
  return {
      {"a step for all heads",
       {x, f32({2, 5, 1}), a, b, b, a, state},
       attributes,
       "needs dt f32[2,5,4], got f32[2,5,1]"},
      {"decays of another number of heads",
       {x, dt, f32({3}), b, b, a, state},
       attributes,
       "needs a f32[4], got f32[3]"},
      {"b and c that differ",
       {x, dt, a, b, f32({2, 5, 2, 3}), a, state},
       attributes,
       "b f32[2,5,1,3] and c f32[2,5,2,3] differ in shape"},
      {"groups that do not divide the heads",
       {x, dt, a, f32({2, 5, 3, 3}), f32({2, 5, 3, 3}), a, state},
       attributes,
       "4 heads are no multiple of 3"},
      {"a state transposed",
       {x, dt, a, b, b, a, f32({2, 4, 6, 3})},
       attributes,
       "needs the initial state f32[2,4,3,6], got f32[2,4,6,3]"},
      {"resets that are not announced",
       {x, dt, a, b, b, a, state, {DType::boolean, {2, 5}}},
       attributes,
       "needs 7 operands, got 8"},
  };
}

const OpRegistrar ssd_op(OpDef{
    .name = "ssd",
    .summary = "state-space duality of Mamba-2: a matrix as state, one decay for each head",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .samples = samples,
    .error_samples = error_samples,
});

}  // namespace

RecurrenceResult ssd(Tensor x, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor skip,
                     RecurrenceOptions options, SourceLoc loc) {
  constexpr std::string_view kNames[] = {"x", "dt", "a", "b", "c", "skip"};
  std::vector<Tensor> operands = {x, dt, a, b, c, skip};
  for (size_t i = 0; i < operands.size(); ++i) require_tensor("ssd", kNames[i], operands[i], loc);
  if (!options.initial.valid() && x.rank() == 4 && b.rank() == 4)
    options.initial =
        full(innermost_builder("ssd", operands, loc),
             {compute_dtype(x.dtype()), {x.dim(0), x.dim(2), b.dim(3), x.dim(3)}}, 0, loc);
  if (options.initial.valid()) operands.push_back(options.initial);
  if (options.resets.valid()) operands.push_back(options.resets);
  const std::vector<Tensor> made = apply_all(
      "ssd", operands, {{"chunk", options.chunk}, {"resets", options.resets.valid()}}, loc);
  return {made[0], made[1]};
}

}  // namespace fullbore
