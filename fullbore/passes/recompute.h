#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Makes activations a second time where the gradient needs them, instead of keeping them: the
/// rematerialisation of Chen et al. 2016, arXiv:1604.06174, on any graph and without marks in the model.
/// Values are given up one by one, where most memory is needed, the one first that frees most bytes for
/// least work (Kirisame et al. 2020, arXiv:2006.09616, choose alike). Random numbers are pure functions
/// of seed, step and site, so they come out alike; the results of the step are the same to the bit.
///
/// before  every value is made once and kept until it is last read
/// after   `target.recompute` automatic: the estimate of the arena (node_order.h) is at most
///         `target.arena_bytes`, or no value can be given up that would lower it; full: the latter.
///         A node is executed at most twice, so the extra work is below that of the forward pass
/// here    last: what kernels hand to one another, and in which type, is known, so bytes can be
///         counted. Any pass that merges equal nodes would undo it
Graph recompute(const Graph& graph, const Target& target);

/// The estimate of the arena for a step: what `recompute` lowers.
int64_t estimated_arena_bytes(const Graph& graph);

}  // namespace fullbore
