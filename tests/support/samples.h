#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {

/// A sample as a graph of one node and values for its inputs.
struct MaterialisedSample {
  Graph graph;                  ///< inputs "x0", "x1", ... (batch), outputs "y0", "y1", ...
  std::vector<Literal> inputs;  ///< one per input of the graph, rounded to its dtype
  std::vector<bool> wanted;     ///< per input: floating and to be checked by finite differences
};

/// f32 becomes `dtype`; every other dtype stays. The rule of OpDef::samples.
DType sample_dtype(DType written, DType dtype);
/// The same in every type and DType attribute of a body, which is rebuilt.
Graph sample_graph(const Graph& graph, DType dtype);

/// Builds the sample's call of `op` with every f32 written as `dtype`, and fills its operands;
/// operand i is drawn from (seed, i), so it does not depend on the others or on the dtype.
MaterialisedSample materialise(const OpDef& op, const Sample& sample, DType dtype, uint64_t seed);

/// The dtypes that an op's samples are run in: OpDef::dtypes, or {f32} if that is empty (samples
/// that name no f32 at all).
std::vector<DType> sample_dtypes(const OpDef& op);

/// Values for one operand.
Literal fill(const SampleInput& input, DType dtype, uint64_t seed, uint64_t stream);

}  // namespace fullbore
