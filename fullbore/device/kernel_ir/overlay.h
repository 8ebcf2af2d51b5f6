#pragma once
#include <span>
#include <string>

#include "fullbore/device/kernel_ir/lower.h"

namespace fullbore::jit {

/// Does every access of the node's buffer `input` read what the buffer `output` is about to have written
/// at the same point, and nothing else?
bool overlays(const LoweredPiece& piece, int input, int output);

/// "mul,erf,add": what computes among the nodes.
std::string ops_text(std::span<const Node> nodes);

}  // namespace fullbore::jit
