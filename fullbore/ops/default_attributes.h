#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// What the attribute of an op's node is where the caller of the op's function gives what he must and no more.
struct DefaultAttribute {
  std::string name;
  /// As graphs print it; "-1" for the last axis, however many there are. None: the node is without the attribute.
  std::optional<std::string> value;
};

/// The entry's value as graphs print it.
std::string attribute_value_text(const Attributes::Entry& entry);

/// Sorted by name; empty for an op whose function has no defaults. Nothing is written down twice: the function of
/// ops.h and its neighbours is called, twice, with operands and required arguments that have nothing in common, and what
/// the two nodes agree on are its defaults. Per-axis lists are those of two axes.
std::vector<DefaultAttribute> default_attributes(const OpDef& op);

}  // namespace fullbore
