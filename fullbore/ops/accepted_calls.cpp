#include "fullbore/ops/accepted_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/ops/operand_names.h"

namespace fullbore {

std::optional<std::vector<TensorType>> try_infer(const OpDef& op, const Sample& sample,
                                                 const std::vector<TensorType>& inputs,
                                                 const Attributes& attributes, Names& names) {
  const OperandNames heard(inputs);
  std::optional<std::vector<TensorType>> outputs;
  try {
    outputs = op.infer({op, inputs, attributes, sample.body.get(), SourceLoc{}});
  } catch (const UsageError&) {
    // Refused: that is an answer too, and its message has named operands.
  }
  names.resize(std::max(names.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const std::string& name = heard.names()[i];
        !name.empty() && std::ranges::find(names[i], name) == names[i].end())
      names[i].push_back(name);
  return outputs;
}

namespace {

Attributes with_dtype(const Attributes& attributes, DType from, DType to) {
  Attributes changed = attributes;
  for (const Attributes::Entry& entry : attributes.entries())
    if (const auto* dtype = std::get_if<DType>(&entry.value); dtype != nullptr && *dtype == from)
      changed.set(entry.name, to);
  return changed;
}

// Operand i in another dtype: alone, or with all that have its dtype, or with the attributes that have it as well.
void try_dtypes(const OpDef& op, const Sample& sample, const AcceptedCall& call, size_t i,
                Findings& found) {
  const DType own = call.inputs[i].dtype;
  for (const DType dtype : kAllDTypes) {
    if (dtype == own) continue;
    std::vector<TensorType> alone = call.inputs;
    alone[i].dtype = dtype;
    std::vector<TensorType> together = call.inputs;
    for (TensorType& type : together)
      if (type.dtype == own) type.dtype = dtype;
    const std::pair<std::vector<TensorType>, Attributes> tries[] = {
        {alone, call.attributes},
        {together, call.attributes},
        {together, with_dtype(call.attributes, own, dtype)}};
    for (const auto& [inputs, attributes] : tries)
      if (auto outputs = try_infer(op, sample, inputs, attributes, found.names))
        found.calls.push_back({inputs, attributes, std::move(*outputs)});
  }
}

// For the names in its refusals: operand i with an axis more.
void try_rank(const OpDef& op, const Sample& sample, const AcceptedCall& call, size_t i,
              Findings& found) {
  std::vector<TensorType> changed = call.inputs;
  changed[i].shape = changed[i].shape.inserted(0, 3);
  try_infer(op, sample, changed, call.attributes, found.names);
}

}  // namespace

Findings findings(const OpDef& op, const std::vector<Sample>& samples) {
  Findings found;
  for (const Sample& sample : samples) {
    std::vector<TensorType> inputs;
    for (const SampleInput& input : sample.inputs) inputs.push_back(input.type);
    auto outputs = try_infer(op, sample, inputs, sample.attributes, found.names);
    FB_CHECK(outputs, "{} refuses its sample '{}'", op.name, sample.why);
    const AcceptedCall call{inputs, sample.attributes, std::move(*outputs)};
    found.samples.push_back(call);
    found.calls.push_back(call);
    for (size_t i = 0; i < inputs.size(); ++i) {
      try_dtypes(op, sample, call, i, found);
      try_rank(op, sample, call, i, found);
    }
  }
  for (size_t i = 0; i < found.names.size(); ++i)
    if (found.names[i].empty()) found.names[i].push_back(fmt::format("x{}", i));
  return found;
}

}  // namespace fullbore
