#pragma once
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// While it lives, this thread writes the body of a loop.
class WrittenBody {
 public:
  explicit WrittenBody(GraphBuilder& body);
  ~WrittenBody();
  WrittenBody(const WrittenBody&) = delete;
  WrittenBody& operator=(const WrittenBody&) = delete;

 private:
  GraphBuilder* outer_;
};

/// The graph that a loop asked for in `builder` belongs to: the innermost body that is being written within `builder`,
/// or `builder` where there is none. What the loop's own body reads may be values of that body, which a loop outside of
/// it could not capture. So a model may begin a loop in the graph of its trace, whatever loop the model is itself
/// written into: one over microbatches, for example.
GraphBuilder& graph_of_loop(GraphBuilder& builder);

}  // namespace fullbore
