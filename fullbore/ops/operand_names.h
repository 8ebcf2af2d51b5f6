#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// While it lives, the checks of `infer` (rules.h) on this thread write down what they call the operands of a call:
/// "logits", "targets". The names are thus those of the error messages.
class OperandNames {
 public:
  /// inputs: the OpCall's, which must live as long.
  explicit OperandNames(std::span<const TensorType> inputs);
  ~OperandNames();
  OperandNames(const OperandNames&) = delete;
  OperandNames& operator=(const OperandNames&) = delete;

  /// One for each operand; empty where no check has named it.
  const std::vector<std::string>& names() const { return names_; }

  /// What the checks call: `type` is called `name`. Does nothing where nobody listens, or where the type is none of the
  /// call's operands.
  static void note(std::string_view name, const TensorType& type);

 private:
  std::span<const TensorType> inputs_;
  std::vector<std::string> names_;
  OperandNames* outer_;
};

}  // namespace fullbore
