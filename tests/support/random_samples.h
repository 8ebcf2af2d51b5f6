#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// Calls of `op` with random attributes, shapes (extents 0, 1, odd, beside the widths of vectors, now
/// and then large), dtypes and values; the same for the same seed. As in designed samples f32 stands
/// for every floating dtype; ops that take integers or truth values get some calls with those.
///
/// Empty for sources without operands worth varying, regions (whose bodies are programs: see
/// random_graph in the fuzz tests) and composites (which are the graphs of their decompositions).
std::vector<Sample> random_samples(const OpDef& op, uint64_t seed, int count);

}  // namespace fullbore
