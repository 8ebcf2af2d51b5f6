#include "fullbore/train/made_at.h"

namespace fullbore {

std::string made_at(Tensor x) {
  if (!x.alive()) return "";
  const Node* const node = x.builder().graph().producer_node(x.value());
  return node == nullptr || node->location.empty() ? "" : " (" + node->location + ")";
}

}  // namespace fullbore
