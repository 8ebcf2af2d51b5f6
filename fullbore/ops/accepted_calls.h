#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ir/op_def.h"

/// For op_signature.cpp: an op's samples called again, with other operands and attributes.
namespace fullbore {

/// One call that the op accepts.
struct AcceptedCall {
  std::vector<TensorType> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
};

/// Of each operand all that it is called: which one comes where may depend on attributes.
using Names = std::vector<std::vector<std::string>>;

/// What a registered op says when it is called.
struct Findings {
  std::vector<AcceptedCall> samples;
  std::vector<AcceptedCall> calls;  ///< the samples, and they again in other dtypes
  Names names;
};

/// Calls infer, writes down how its checks call the operands, and returns its results if it accepts the call.
std::optional<std::vector<TensorType>> try_infer(const OpDef& op, const Sample& sample,
                                                 const std::vector<TensorType>& inputs,
                                                 const Attributes& attributes, Names& names);

/// The samples in all dtypes that the op accepts.
Findings findings(const OpDef& op, const std::vector<Sample>& samples);

}  // namespace fullbore
