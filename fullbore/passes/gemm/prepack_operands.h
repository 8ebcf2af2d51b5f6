#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Packs the right operand of matmuls once where kernels would pack it again and again: a matrix that
/// every iteration of a loop multiplies by, the loop of its gradient too, or several matmuls of one graph. The
/// copy (prepack) stands outside of the loop, where the matrix comes from, and the matmuls
/// become `prepacked_matmul`.
///
/// before  kernels are settled (`fused` nodes and single matmuls), what is invariant stands outside of loops
/// after   no matmul reads a matrix for whose packed form the target has a kernel, if it has so few rows that
///         copying the matrix is a good part of it, and if that matrix, packed, would be read often enough
/// here    after the passes that look for matmuls of matrices by matrices; before fuse_epilogues, which
///         puts kernels behind either
///
/// Where the target keeps derived weights (passes/gemm/derived_weights.h) and the matrix is a parameter or its low
/// copy, the packed operand is a derived weight too. What the graph updates is packed behind its update, and must be read
/// as often as anything else to be worth it; what it leaves alone is packed once for all runs, and then one reader is
/// enough where the target says so and all of these take 4 GiB at most. A low copy of which nothing but the packed form is made is removed.
///
/// What is few and what is often is the target's to say (PackingTarget). The packed operands are the very copies that
/// the matmuls' kernels make, so the bits are the same, except where a matmul of few rows would have
/// been made without prepacking. They take as much memory as the matrix, as long as they are read, whether
/// activations are kept or rematerialized: the bits of a step must not depend on that.
Graph prepack_operands(const Graph& graph, const Target& target);

}  // namespace fullbore
