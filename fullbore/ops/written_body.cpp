#include "fullbore/ops/written_body.h"

namespace fullbore {
namespace {

thread_local GraphBuilder* innermost = nullptr;

}  // namespace

WrittenBody::WrittenBody(GraphBuilder& body) : outer_(innermost) { innermost = &body; }
WrittenBody::~WrittenBody() { innermost = outer_; }

GraphBuilder& graph_of_loop(GraphBuilder& builder) {
  for (const GraphBuilder* each = innermost; each != nullptr; each = each->outer())
    if (each == &builder) return *innermost;
  return builder;
}

}  // namespace fullbore
