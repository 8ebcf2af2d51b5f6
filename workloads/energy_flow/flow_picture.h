#pragma once
#include <string>

#include "workloads/energy_flow/flow_history.h"

namespace fullbore::energy_flow {

/// An SVG document that stands alone, without script: ways of at most `most_paths` flows through the lattice from the
/// side and from above, how many flows there were in each step and what became of them, and the surfaces of the input,
/// of what came out and of the target. `about`: a line for people.
std::string flow_picture_svg(const FlowHistory& history, const std::string& about,
                             size_t most_paths = 400);

}  // namespace fullbore::energy_flow
