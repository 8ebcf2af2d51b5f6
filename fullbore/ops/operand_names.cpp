#include "fullbore/ops/operand_names.h"

namespace fullbore {
namespace {

thread_local OperandNames* listening = nullptr;

}  // namespace

OperandNames::OperandNames(std::span<const TensorType> inputs)
    : inputs_(inputs), names_(inputs.size()), outer_(listening) {
  listening = this;
}

OperandNames::~OperandNames() { listening = outer_; }

void OperandNames::note(std::string_view name, const TensorType& type) {
  if (listening == nullptr) return;
  // By address: several operands may be of one type.
  for (size_t i = 0; i < listening->inputs_.size(); ++i)
    if (&listening->inputs_[i] == &type && listening->names_[i].empty())
      listening->names_[i] = name;
}

}  // namespace fullbore
