#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/ir/attributes.h"
#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// How a matrix lies in panels: the attributes of pack_panels.
struct Packing {
  bool transposed = false;
  int64_t panel = 1;
  int64_t pair = 1;

  auto operator<=>(const Packing&) const = default;
  Attributes attributes() const {
    return {{"transposed", transposed}, {"panel", panel}, {"pair", pair}};
  }
};

/// A parameter in the form in which products read it: in a low dtype, in panels, or both. A graph reads it as an
/// input of role `copy`, whose name says all of this, as in "head.weight as bf16 in panels of 32 by 2": what is
/// printed and read again loses nothing, and equal copies that several programs read are one.
struct WeightCopy {
  std::string parameter;                ///< State that it is a copy of
  std::optional<DType> dtype = {};      ///< that the parameter is cast to, if it is
  std::optional<Packing> packing = {};  ///< of that, if it lies in panels

  std::string name() const;
  /// The copy that has this name, or none.
  static std::optional<WeightCopy> parse(std::string_view name);

  /// Writes down how it follows from the parameter.
  Tensor make(Tensor original) const;
  /// A copy in panels, of the tensor that is the copy without them.
  Tensor pack(Tensor unpacked) const;
};

/// What products may read a copy of: a parameter, or a copy of one that is not in panels. None for any other input.
std::optional<WeightCopy> copied_by(const Graph::Input& input);

/// The value that replaces an input of the graph, or none.
std::optional<Value> update_of(const Graph& graph, int input);

/// The graph without copies that nodes of `before` read, from which it has been made, and its own nodes do not; and
/// without what updates them.
Graph without_abandoned_copies(const Graph& graph, const Graph& before);

/// The graph that makes all copies anew that nodes of `graph` read; null if there are none. Its inputs are the
/// parameters and the copies, by the names and types that `graph` and `parameter_types` give them.
std::optional<Graph> copying_graph(const Graph& graph);

}  // namespace fullbore
