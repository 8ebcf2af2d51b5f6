#pragma once
#include <span>

#include "tests/support/ptx/machine.h"

namespace fullbore::ptx {

/// Makes an instruction that the threads of a warp make together, for those that have come: by lane, null where the warp
/// has no such thread, or `mask` leaves it out.
void meet(std::span<Lane* const> lanes, const Instruction& instruction);
/// One of these, by a whole warp: warpgroup.cpp.
void warpgroup_product(std::span<Lane* const> lanes, const Instruction& instruction);

}  // namespace fullbore::ptx
