#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Makes activations a second time where the gradient needs them, instead of keeping them: the
/// rematerialisation of Chen et al. 2016, arXiv:1604.06174, on any graph and without marks in the model
/// (memory_lowering.h). Random numbers are pure functions
/// of seed, step and site, so they come out alike; the results of the step are the same to the bit.
///
/// before  every value is made once and kept until it is last read
/// after   `target.recompute` automatic: the estimate of the arena (memory_lowering.h) is at most
///         `target.arena_bytes`, or no value can be given up that would lower it; full: the latter.
///         A node is executed at most twice, so the extra work is below that of the forward pass
/// here    last: what kernels hand to one another, and in which type, is known, so bytes can be
///         counted. Any pass that merges equal nodes would undo it
Graph rematerialize(const Graph& graph, const Target& target);

}  // namespace fullbore
