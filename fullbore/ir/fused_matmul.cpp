#include "fullbore/ir/fused_matmul.h"

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

const Node* fused_matmul(const Node& node) {
  if (!node.body || is_loop(node) || node.body->nodes().empty()) return nullptr;
  const Node& first = node.body->nodes().front();
  return first.op->is(Tag::contraction) ? &first : nullptr;
}

}  // namespace fullbore
