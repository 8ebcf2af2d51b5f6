#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Makes convolutions of 3 x 3 in tiles of 2 x 2 outputs (see winograd_convolution.cpp), where a device has such a kernel
/// (Target::native_ops) and channels and outputs are enough to pay for what is added before and after.
///
/// before  convolutions forward, and of gradients in their inputs
/// after   those of 3 x 3 over two axes without strides and dilations, with at least 16 channels and outputs of a group, are
///         winograd_convolution with the same operands and attributes
/// here    after elimination; nothing behind it looks for convolutions
Graph winograd_convolutions(const Graph& graph, const Target& target);

}  // namespace fullbore
