#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/default_attributes.h"

namespace fullbore {

/// How an op is called, as its own record says it: its samples are called, and called again with other dtypes, without
/// each attribute and with one operand more, and what OpDef::infer accepts is written down. Nothing of it is stored
/// anywhere else, so nothing can disagree with the op.
struct OpSignature {
  struct Attribute {
    std::string name;
    std::string_view
        type;  ///< "bool", "integer", "number", "text", "dtype", "integers" or "numbers"
    bool required = true;                  ///< does the op refuse a call without it?
    std::vector<std::string> values = {};  ///< of the samples, each once, as graphs print them
    /// Of the op's function; none where the caller must say it, or where it follows from the operands.
    std::optional<DefaultAttribute> default_value = {};
  };
  struct Operand {
    std::string name;  ///< the one of the op's messages; "x1" where these have none for operand 1
    std::vector<DType> dtypes;  ///< that the op accepts in this place
    int least_rank = 0;         ///< of the samples
    int largest_rank = 0;
    bool required = true;  ///< do all samples have it?
    bool has_gradient = false;
  };
  struct Result {
    /// "as x": the operand's; "as x, at least f32": that, or f32 where it is narrower; "attribute dtype": the
    /// attribute's; "i32": always; "as a; with wide: as a, at least f32": by a bool attribute; "varies".
    std::string dtype;
    /// "as x", "attribute shape", "[]", or "computed": by a rule of the op's own, of which the samples are examples.
    std::string shape;
    bool required = true;  ///< do all samples have it?
  };
  std::vector<Attribute> attributes;  ///< sorted by name
  std::vector<Operand> operands;      ///< of the sample with the most
  std::vector<Result> results;
  bool variadic = false;  ///< may more operands follow, like the last one?
  bool has_body = false;
};

/// The op must have samples. Takes milliseconds.
OpSignature op_signature(const OpDef& op);

/// Does a cotangent pass the op: by its own rule, its decomposition or, of a loop, that of its body?
bool has_gradient(const OpDef& op);

}  // namespace fullbore
