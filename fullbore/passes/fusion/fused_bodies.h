#pragma once
#include <functional>

#include "fullbore/ir/graph.h"
#include "fullbore/passes/fusion/fusion_groups.h"

namespace fullbore {

/// Of a value that a group makes: do all groups that read it make it by themselves, so that no memory holds it?
using MadeByReaders = std::function<bool(Value)>;

/// Is the value one of those, or made of one by reshapes and repetitions?
bool comes_from_readers(const Graph& graph, const MadeByReaders& made_by_readers, Value value);

/// The graph with each group as one `fused` node, and with loops' bodies rewritten. A group of one node that reads all
/// of its operands as they are stays that node; what nobody reads any more is left out. `made_by_readers` may be null:
/// no value is.
Graph write_groups(const Graph& graph, const FusionGroups& groups,
                   const MadeByReaders& made_by_readers,
                   const std::function<Graph(const Graph&)>& rewrite_loop_body);

}  // namespace fullbore
