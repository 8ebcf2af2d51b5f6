#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/ir/literal.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

/// A loop with all that it reads, to be written down in two ways.
struct LoopProgram {
  std::string name = {};
  std::vector<TensorType> carried = {}, sliced = {}, captured = {};  ///< f64 or integers
  int64_t iterations = 0;
  bool reverse = false;
  bool counted = false;
  int64_t count = 0;  ///< the number given where counted
  int64_t segments = 0;
  /// The body on the index, the carried values, the rows, and the captured values.
  std::function<IterationResults(const LoopBody&, const std::vector<Tensor>&)> body = {};
};

/// Graph whose inputs are carried, sliced, captured and the count, if there is one, and whose
/// outputs are the loop's results. `unrolled`: without a loop, every iteration written out and masked by
/// whether it is made, which is the definition of what a loop computes (ir/loop.h).
Graph loop_program_graph(const LoopProgram& program, bool unrolled);
/// Values for its inputs: standard normal, scaled by 1/2; integers 0 to 3.
std::vector<Literal> loop_program_inputs(const LoopProgram& program, uint64_t seed);

/// Every form of loop: plain, reverse, counted, until, both, nested, with captured weights, slices,
/// integers among the carried values, results that nobody reads.
std::vector<LoopProgram> loop_programs();

}  // namespace fullbore
