#include "fullbore/ops/op_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/ops/accepted_calls.h"
#include "fullbore/ops/compose.h"

namespace fullbore {
namespace {

// "mask or seed"
std::string called(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string_view type_text(const Attributes::Value& value) {
  static constexpr std::array<std::string_view, std::variant_size_v<Attributes::Value>> kTypes = {
      "bool", "integer", "number", "text", "dtype", "integers", "numbers"};
  return kTypes[value.index()];
}

Attributes without(const Attributes& attributes, std::string_view name) {
  Attributes rest;
  for (const Attributes::Entry& entry : attributes.entries())
    if (entry.name != name) rest.set(entry.name, entry.value);
  return rest;
}

std::vector<OpSignature::Attribute> attributes_of(const OpDef& op,
                                                  const std::vector<Sample>& samples) {
  std::vector<OpSignature::Attribute> attributes;
  Names unused;
  for (const Sample& sample : samples) {
    std::vector<TensorType> inputs;
    for (const SampleInput& input : sample.inputs) inputs.push_back(input.type);
    for (const Attributes::Entry& entry : sample.attributes.entries()) {
      auto known = std::ranges::find(attributes, entry.name, &OpSignature::Attribute::name);
      if (known == attributes.end())
        known = attributes.insert(known, {.name = entry.name, .type = type_text(entry.value)});
      if (const std::string value = attribute_value_text(entry);
          std::ranges::find(known->values, value) == known->values.end())
        known->values.push_back(value);
      if (known->required &&
          try_infer(op, sample, inputs, without(sample.attributes, entry.name), unused))
        known->required = false;
    }
  }
  std::ranges::sort(attributes, {}, &OpSignature::Attribute::name);
  for (const DefaultAttribute& found : default_attributes(op))
    if (const auto own = std::ranges::find(attributes, found.name, &OpSignature::Attribute::name);
        own != attributes.end())
      own->default_value = found;
  return attributes;
}

std::vector<OpSignature::Operand> operands_of(const OpDef& op, const std::vector<Sample>& samples,
                                              const Findings& found) {
  std::vector<OpSignature::Operand> operands;
  for (size_t i = 0; i < found.names.size(); ++i) {
    OpSignature::Operand operand{.name = called(found.names[i]), .dtypes = {}};
    for (const DType dtype : kAllDTypes)
      if (std::ranges::any_of(found.calls, [&](const AcceptedCall& call) {
            return i < call.inputs.size() && call.inputs[i].dtype == dtype;
          }))
        operand.dtypes.push_back(dtype);
    bool first = true;
    for (const Sample& sample : samples) {
      if (i >= sample.inputs.size()) {
        operand.required = false;
        continue;
      }
      const SampleInput& input = sample.inputs[i];
      const int rank = input.type.shape.rank();
      operand.least_rank = first ? rank : std::min(operand.least_rank, rank);
      operand.largest_rank = std::max(operand.largest_rank, rank);
      first = false;
      if (has_gradient(op) && input.differentiable && is_floating(input.type.dtype))
        operand.has_gradient = true;
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

// The first of the operands whose property is the result's in all calls that have the result.
template <class Agrees>
std::optional<std::string> as_operand(const Names& names, const std::vector<AcceptedCall>& calls,
                                      size_t result, const Agrees& agrees) {
  for (size_t i = 0; i < names.size(); ++i)
    if (std::ranges::all_of(calls, [&](const AcceptedCall& call) {
          return result >= call.outputs.size() ||
                 (i < call.inputs.size() && agrees(call.inputs[i], call.outputs[result]));
        }))
      return "as " + called(names[i]);
  return std::nullopt;
}

// The same of attributes.
template <class T, class Agrees>
std::optional<std::string> as_attribute(const std::vector<OpSignature::Attribute>& attributes,
                                        const std::vector<AcceptedCall>& calls, size_t result,
                                        const Agrees& agrees) {
  for (const OpSignature::Attribute& attribute : attributes)
    if (std::ranges::all_of(calls, [&](const AcceptedCall& call) {
          if (result >= call.outputs.size()) return true;
          for (const Attributes::Entry& entry : call.attributes.entries())
            if (entry.name == attribute.name)
              if (const T* value = std::get_if<T>(&entry.value))
                return agrees(*value, call.outputs[result]);
          return false;
        }))
      return "attribute " + attribute.name;
  return std::nullopt;
}

template <class Same>
bool all_results(const std::vector<AcceptedCall>& calls, size_t result, const Same& same) {
  return std::ranges::all_of(calls, [&](const AcceptedCall& call) {
    return result >= call.outputs.size() || same(call.outputs[result]);
  });
}

// Of calls that one rule may cover.
std::optional<std::string> one_dtype_rule(const OpSignature& signature, const Names& names,
                                          const std::vector<AcceptedCall>& calls, size_t result) {
  if (auto as =
          as_operand(names, calls, result, [](const TensorType& input, const TensorType& output) {
            return input.dtype == output.dtype;
          }))
    return as;
  if (auto as = as_attribute<DType>(
          signature.attributes, calls, result,
          [](DType dtype, const TensorType& output) { return dtype == output.dtype; }))
    return as;
  for (const DType dtype : kAllDTypes)
    if (all_results(calls, result, [&](const TensorType& output) { return output.dtype == dtype; }))
      return std::string(dtype_name(dtype));
  if (const auto as =
          as_operand(names, calls, result, [](const TensorType& input, const TensorType& output) {
            return is_floating(input.dtype) && compute_dtype(input.dtype) == output.dtype;
          }))
    return *as + ", at least f32";
  return std::nullopt;
}

std::string dtype_rule(const OpSignature& signature, const Findings& found, size_t result) {
  if (const auto rule = one_dtype_rule(signature, found.names, found.calls, result)) return *rule;
  for (const OpSignature::Attribute& attribute : signature.attributes) {
    if (attribute.type != "bool" || !attribute.required) continue;
    std::vector<AcceptedCall> calls[2];
    for (const AcceptedCall& call : found.calls)
      calls[call.attributes.get<bool>(attribute.name) ? 1 : 0].push_back(call);
    const auto without = one_dtype_rule(signature, found.names, calls[0], result);
    const auto with = one_dtype_rule(signature, found.names, calls[1], result);
    if (without && with) return fmt::format("{}; with {}: {}", *without, attribute.name, *with);
  }
  return "varies";
}

// By the samples alone: a dtype changes no shape.
std::string shape_rule(const OpSignature& signature, const Findings& found, size_t result) {
  if (all_results(found.samples, result,
                  [](const TensorType& output) { return output.shape.rank() == 0; }))
    return "[]";
  if (const auto as = as_operand(found.names, found.samples, result,
                                 [](const TensorType& input, const TensorType& output) {
                                   return input.shape == output.shape;
                                 }))
    return *as;
  if (const auto as = as_attribute<std::vector<int64_t>>(
          signature.attributes, found.samples, result,
          [](const std::vector<int64_t>& extents, const TensorType& output) {
            return Shape(extents) == output.shape;
          }))
    return *as;
  return "computed";
}

bool takes_more(const OpDef& op, const std::vector<Sample>& samples) {
  const Sample& largest = *std::ranges::max_element(
      samples, {}, [](const Sample& sample) { return sample.inputs.size(); });
  if (largest.body != nullptr) return true;  // as many as its body has inputs
  if (largest.inputs.empty()) return false;
  std::vector<TensorType> inputs;
  for (const SampleInput& input : largest.inputs) inputs.push_back(input.type);
  // More than the one that an optional operand at the end would be.
  inputs.insert(inputs.end(), 4, TensorType(inputs.back()));
  Names unused;
  return try_infer(op, largest, inputs, largest.attributes, unused).has_value();
}

}  // namespace

bool has_gradient(const OpDef& op) {
  if (op.is(Tag::zero_gradient)) return false;
  // The gradient of a loop is another loop (autodiff/loop_gradient.h).
  return op.vjp != nullptr || op.decompose != nullptr || op.name == "loop";
}

OpSignature op_signature(const OpDef& op) {
  FB_CHECK(op.samples != nullptr, "op '{}' has no samples", op.name);
  const std::vector<Sample> samples = op.samples();
  FB_CHECK(!samples.empty(), "op '{}' has no samples", op.name);
  const Findings found = findings(op, samples);
  OpSignature signature;
  signature.attributes = attributes_of(op, samples);
  signature.operands = operands_of(op, samples, found);
  signature.variadic = takes_more(op, samples);
  signature.has_body = samples.front().body != nullptr;
  size_t results = 0;
  for (const AcceptedCall& call : found.samples) results = std::max(results, call.outputs.size());
  for (size_t i = 0; i < results; ++i)
    signature.results.push_back({dtype_rule(signature, found, i), shape_rule(signature, found, i),
                                 std::ranges::all_of(found.samples, [&](const AcceptedCall& call) {
                                   return i < call.outputs.size();
                                 })});
  return signature;
}

}  // namespace fullbore
