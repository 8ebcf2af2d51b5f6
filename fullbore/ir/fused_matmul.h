#pragma once
#include "fullbore/ir/graph.h"

namespace fullbore {

/// The contraction in the body of a `fused` node, which then is the body's first node and reads its inputs
/// alone; null if the body has none or the node is another. The rest of such a body is what
/// passes/fusion/fuse_epilogues.h has put behind the matmul.
const Node* fused_matmul(const Node& node);

}  // namespace fullbore
