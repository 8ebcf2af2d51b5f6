#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// A loop and the values that it reads, as numbered by the caller.
struct LoopCall {
  Node node;  ///< op, attributes, body; its inputs and outputs are not looked at
  std::vector<int> inputs;

  size_t results() const;  ///< number of them
};

/// Reads each sliced and captured operand once, merges what is common in the body, and stacks each
/// value once.
/// -> per result of the loop as it was, which result of the changed one it is
std::vector<int> merge_within(LoopCall& loop);

struct MergedLoops {
  LoopCall loop;
  std::vector<int> first;   ///< per result of the first loop: which one of the merged loop's it is
  std::vector<int> second;  ///< the same of the second
};

/// One loop for two that have equal attributes and read the same count, carried and sliced operands,
/// if they also compute the same carried values and stop; to stand where the first stands, so what
/// the second captures must be there already.
std::optional<MergedLoops> merge_loops(const LoopCall& first, const LoopCall& second,
                                       const std::function<bool(int)>& exists_before_first);

}  // namespace fullbore
