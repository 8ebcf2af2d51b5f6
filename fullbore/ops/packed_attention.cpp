#include "fullbore/ops/packed_attention.h"

#include <algorithm>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

constexpr size_t kUnpackedMore = kAttentionOperands - kPackedOperands;
static_assert(kUnpackedMore == kAttentionGradientOperands - kPackedGradientOperands);

int64_t heads_of(const Attributes& attributes) { return attributes.get<int64_t>("heads"); }

Attributes unpacked_attributes(const Attributes& attributes) {
  Attributes result;
  for (const Attributes::Entry& entry : attributes.entries())
    if (entry.name != "heads") result.set(entry.name, entry.value);
  return result;
}

// [B,T,H,...] <-> [B,H,T,...]
TensorType swapped(const TensorType& type) {
  return {type.dtype, type.shape.without(1).inserted(2, type.shape[1])};
}
Tensor swapped(Tensor x) {
  return x.rank() == 4 ? transpose(x, {0, 2, 1, 3}) : transpose(x, {0, 2, 1});
}

/// First heads and counts of queries, keys and values.
struct Parts {
  int64_t first[3];
  int64_t count[3];
  Parts(int64_t all, int64_t heads) {
    const int64_t groups = (all - heads) / 2;
    const int64_t firsts[] = {0, heads, heads + groups};
    const int64_t counts[] = {heads, groups, groups};
    std::copy(firsts, firsts + 3, first);
    std::copy(counts, counts + 3, count);
  }
};

std::vector<TensorType> unpacked_types(std::span<const TensorType> inputs, int64_t heads,
                                       size_t operands) {
  std::vector<TensorType> types;
  const TensorType& qkv = inputs[0];
  const Parts parts(qkv.shape[2], heads);
  for (const int64_t count : parts.count)
    types.push_back({qkv.dtype, {qkv.shape[0], count, qkv.shape[1], qkv.shape[3]}});
  if (operands == kPackedGradientOperands)
    types.insert(types.end(), {swapped(inputs[1]), inputs[2], swapped(inputs[3])});
  types.insert(types.end(), inputs.begin() + static_cast<std::ptrdiff_t>(operands), inputs.end());
  return types;
}

// Throws UsageError for what neither packed op takes; then the types are those of attention's call.
std::vector<TensorType> require_packed(const OpCall& call, size_t operands) {
  require_inputs(call, operands, operands + 4);
  require_dtype(call, 0, "qkv", DTypeSet::floating);
  require_rank(call, 0, "qkv", 4);
  const auto heads = require_attribute<int64_t>(call, "heads");
  const int64_t others = call.inputs[0].shape[2] - heads;
  if (heads < 1 || others < 2 || others % 2 != 0)
    call.fail(fmt::format("{} has not {} heads of queries and as many of keys as of values",
                          operand_text("qkv", call.inputs[0]), heads));
  if (operands == kPackedGradientOperands) {
    require_rank(call, 1, "dy", 4);
    require_rank(call, 3, "delta", 3);
  }
  return unpacked_types(call.inputs, heads, operands);
}

std::vector<TensorType> infer_unpacked(const OpCall& call, size_t operands, const char* op) {
  const std::vector<TensorType> types = require_packed(call, operands);
  const Attributes attributes = unpacked_attributes(call.attributes);
  const OpCall unpacked{call.op, types, attributes, call.body, call.loc};
  if (operands == kPackedGradientOperands) OperandNames::note("log_sum_exp", call.inputs[2]);
  // Mask, seed and step are the last ones of both calls, and have their names from attention.
  std::vector<std::string> names;
  std::vector<TensorType> results;
  {
    const OperandNames heard(types);
    results = get_op(op).infer(unpacked);
    names = heard.names();
  }
  for (size_t i = operands; i < call.inputs.size(); ++i)
    OperandNames::note(names[types.size() - call.inputs.size() + i], call.inputs[i]);
  return results;
}

std::vector<TensorType> infer(const OpCall& call) {
  const std::vector<TensorType> types = infer_unpacked(call, kPackedOperands, "attention");
  return {swapped(types[0]), types[1]};
}

std::vector<TensorType> infer_gradient(const OpCall& call) {
  infer_unpacked(call, kPackedGradientOperands, "attention_gradient");
  return {call.inputs[0]};
}

std::vector<Tensor> unpacked(std::span<const Tensor> inputs, const Attributes& attributes,
                             size_t operands) {
  const Tensor heads_first = swapped(inputs[0]);
  const Parts parts(heads_first.dim(1), heads_of(attributes));
  std::vector<Tensor> result;
  for (int i = 0; i < 3; ++i)
    result.push_back(slice(heads_first, 1, parts.first[i], parts.first[i] + parts.count[i]));
  if (operands == kPackedGradientOperands)
    result.insert(result.end(), {swapped(inputs[1]), inputs[2], swapped(inputs[3])});
  result.insert(result.end(), inputs.begin() + static_cast<std::ptrdiff_t>(operands), inputs.end());
  return result;
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const std::vector<Tensor> results =
      apply_all("attention", unpacked(call.inputs, call.attributes, kPackedOperands),
                unpacked_attributes(call.attributes), call.loc);
  return {swapped(results[0]), results[1]};
}

std::vector<Tensor> decompose_gradient(const DecomposeCall& call) {
  const std::vector<Tensor> results = apply_all(
      "attention_gradient", unpacked(call.inputs, call.attributes, kPackedGradientOperands),
      unpacked_attributes(call.attributes), call.loc);
  return {swapped(concat(results, 1))};
}

std::vector<Tensor> vjp(const VjpCall& call) {
  const Tensor y = call.outputs[0];
  const Tensor dy = call.cotangents[0].valid() ? call.cotangents[0] : zeros_like(y);
  Tensor delta = reduce_sum(widened(dy) * widened(y), {-1});
  if (call.cotangents[1].valid()) delta = delta - swapped(call.cotangents[1]);
  std::vector<Tensor> cotangents(call.inputs.size());
  if (call.wanted[0]) {
    std::vector<Tensor> operands = {call.inputs[0], dy, call.outputs[1], delta};
    operands.insert(operands.end(), call.inputs.begin() + kPackedOperands, call.inputs.end());
    cotangents[0] = apply_all("packed_attention_gradient", operands, call.attributes, call.loc)[0];
  }
  if (call.attributes.get<bool>("masked") && call.wanted[kPackedOperands]) {
    const std::vector<Tensor> operands = unpacked(call.inputs, call.attributes, kPackedOperands);
    const Attributes attributes = unpacked_attributes(call.attributes);
    const AttentionCall attention(operands, attributes, kAttentionOperands);
    cotangents[kPackedOperands] =
        mask_cotangent(attention, swapped(dy), call.outputs[1], swapped(delta));
  }
  return cotangents;
}

template <size_t kOperands>
Cost cost(const CostCall& call) {
  const std::vector<TensorType> types =
      unpacked_types(call.inputs, heads_of(call.attributes), kOperands);
  const Attributes attributes = unpacked_attributes(call.attributes);
  const char* op = kOperands == kPackedOperands ? "attention" : "attention_gradient";
  Cost cost = copy_cost(call);
  cost.flops = get_op(op).cost({types, call.outputs, attributes, nullptr}).flops;
  return cost;
}

// Numbers of heads [first, first + count) of [B,T,all,D] to or from [B,count,T,D].
template <class Visit>
void for_each_element(const Shape& packed, int64_t first, int64_t count, const Visit& visit) {
  const int64_t width = packed.rank() == 4 ? packed[3] : 1;
  size_t unpacked = 0;
  for (int64_t b = 0; b < packed[0]; ++b)
    for (int64_t head = first; head < first + count; ++head)
      for (int64_t t = 0; t < packed[1]; ++t)
        for (int64_t d = 0; d < width; ++d)
          visit(static_cast<size_t>(((b * packed[1] + t) * packed[2] + head) * width + d),
                unpacked++);
}

Literal heads_from(const Literal& packed, int64_t first, int64_t count, TensorType type) {
  Literal result(std::move(type));
  for_each_element(packed.shape(), first, count,
                   [&](size_t from, size_t to) { result.reals()[to] = packed.reals()[from]; });
  return result;
}

template <size_t kOperands>
void reference(ReferenceCall& call) {
  std::vector<TensorType> types;
  for (const Literal* input : call.inputs) types.push_back(input->type());
  types = unpacked_types(types, heads_of(call.attributes), kOperands);
  const Literal& qkv = *call.inputs[0];
  const Parts parts(qkv.shape()[2], heads_of(call.attributes));
  std::vector<Literal> made;
  for (size_t i = 0; i < 3; ++i)
    made.push_back(heads_from(qkv, parts.first[i], parts.count[i], types[i]));
  constexpr bool kGradient = kOperands == kPackedGradientOperands;
  if (kGradient) {
    made.push_back(heads_from(*call.inputs[1], 0, parts.count[0], types[3]));
    made.push_back(*call.inputs[2]);
    made.push_back(heads_from(*call.inputs[3], 0, parts.count[0], types[5]));
  }
  std::vector<const Literal*> inputs;
  for (const Literal& literal : made) inputs.push_back(&literal);
  inputs.insert(inputs.end(), call.inputs.begin() + kOperands, call.inputs.end());
  const Attributes attributes = unpacked_attributes(call.attributes);
  std::vector<Literal> outputs;
  if (kGradient)
    for (size_t i = 0; i < 3; ++i) outputs.emplace_back(types[i]);
  else
    outputs = {Literal(types[0]), call.outputs[1]};
  ReferenceCall inner{inputs, std::move(outputs), attributes, nullptr, {}};
  kGradient ? attention_gradient_reference(inner) : attention_reference(inner);

  call.magnitudes.emplace_back(static_cast<size_t>(call.outputs[0].elements()), 0.0);
  for (size_t i = 0; i < (kGradient ? 3 : 1); ++i)
    for_each_element(call.outputs[0].shape(), parts.first[i], parts.count[i],
                     [&](size_t to, size_t from) {
                       call.outputs[0].reals()[to] = inner.outputs[i].reals()[from];
                       call.magnitudes[0][to] = inner.magnitudes[i][from];
                     });
  if (kGradient) return;
  call.outputs[1] = std::move(inner.outputs[1]);
  call.magnitudes.push_back(std::move(inner.magnitudes[1]));
}

const OpRegistrar packed_attention_op(OpDef{
    .name = "packed_attention",
    .summary = "attention of a sequence to itself, its heads side by side in one tensor",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .vjp = vjp,
    .decompose = decompose,
    .cost = cost<kPackedOperands>,
    .reference = reference<kPackedOperands>,
    .samples = packed_attention_samples,
    .error_samples = packed_attention_error_samples,
    .contracted_operands = 1,  // qkv
});

const OpRegistrar packed_attention_gradient_op(OpDef{
    .name = "packed_attention_gradient",
    .summary = "cotangent of packed_attention's qkv from its operands and row statistics",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer_gradient,
    .decompose = decompose_gradient,
    .cost = cost<kPackedGradientOperands>,
    .reference = reference<kPackedGradientOperands>,
    .samples = packed_attention_gradient_samples,
    .error_samples =
        [] {
          const TensorType qkv{DType::f32, {2, 5, 8, 4}};
          const TensorType dy{DType::f32, {2, 5, 4, 4}};
          const TensorType rows{DType::f32, {2, 4, 5}};
          const Attributes attributes{{"causal", true},     {"masked", false},
                                      {"scale", 0.5},       {"dropout", 0.0},
                                      {"site", int64_t{0}}, {"heads", int64_t{4}}};
          return std::vector<ErrorSample>{
              {"dy of other heads",
               {qkv, {DType::f32, {2, 5, 8, 4}}, rows, {DType::f32, {2, 5, 4}}},
               attributes,
               "needs dy"},
              {"delta with heads first", {qkv, dy, rows, rows}, attributes, "needs delta"}};
        },
    .contracted_operands = 2,  // qkv, dy
});

}  // namespace

bool is_packed_attention(const Node& node) {
  return node.op == op::packed_attention || node.op == op::packed_attention_gradient;
}

AttentionShape packed_attention_shape(std::span<const TensorType> inputs,
                                      const Attributes& attributes, size_t operands) {
  AttentionShape shape(unpacked_types(inputs, heads_of(attributes), operands), attributes,
                       operands + kUnpackedMore);
  shape.mask -= kUnpackedMore;
  shape.source -= kUnpackedMore;
  return shape;
}

Tensor packed_attention(Tensor qkv, int64_t heads, AttentionOptions options, SourceLoc loc) {
  require_tensor("packed_attention", "qkv", qkv, loc);
  Attributes attributes = attention_attributes(qkv, options);
  attributes.set("heads", heads);
  return apply_all("packed_attention", attention_operands("packed_attention", {qkv}, options, loc),
                   attributes, loc)[0];
}

}  // namespace fullbore
