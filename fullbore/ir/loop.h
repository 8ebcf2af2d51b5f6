#pragma once
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// The structure of a loop node; recursion, recurrence, accumulation and adaptive step counts are
/// all this one construct.
///
/// Node inputs:  [count i64[] if counted] carried... sliced... captured...
/// Body inputs:  index i64[], carried..., slice of each sliced (axis 0 removed)..., captured...
/// Body outputs: carried..., stacked..., [stop bool[] if until]
/// Node outputs: carried..., stacked with a leading axis of `iterations`..., [executed i64[] if until]
///
/// Attributes: carried, sliced (counts), iterations (the bound), reverse, until, counted, and where it is so,
/// parallel: iterations may be made side by side, for nothing is carried from one to the next and all are made; and
/// segments: each iteration is a segment of a longer loop, whose inside the gradient computes again.
/// A plain loop makes `iterations` iterations, index 0..iterations-1 (or down, with reverse). `counted` makes
/// min(count, iterations) iterations, index 0..count-1 (or count-1 down to 0). `until` stops after the first
/// iteration whose stop is true; at least one iteration is made when iterations > 0. Sliced operands are read and
/// stacked results written at the index. Rows of stacked results whose iteration was not made are zero:
/// the semantics of a masked unroll of fixed length.
struct LoopShape {
  int carried = 0;
  int sliced = 0;
  int captured = 0;
  int stacked = 0;
  int64_t iterations = 0;
  bool reverse = false;
  bool until = false;
  bool counted = false;
  bool parallel = false;
  int64_t segments = 1;

  explicit LoopShape(const Node& node);
  LoopShape(const Attributes& attributes, int node_inputs, const Graph& body);

  int first_carried() const { return counted ? 1 : 0; }  ///< index among the node's inputs
  int first_sliced() const { return first_carried() + carried; }
  int first_captured() const { return first_sliced() + sliced; }
};

inline bool is_loop(const Node& node) {
  return node.body != nullptr && node.attributes.has("iterations");
}

}  // namespace fullbore
