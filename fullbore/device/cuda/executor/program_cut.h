#pragma once
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/launch_kinds.h"
#include "fullbore/device/cuda/executor/program_walk.h"

namespace fullbore::cuda {

/// Cuts a program into graphs and loops that the host steps, and the bodies of these likewise. A graph takes as much as a
/// graph may hold, iteration by iteration loops of known counts and, as conditional nodes, others. What would make more than
/// 20 000 nodes in all is stepped; so are loops whose counts depend on data where there are no conditional nodes, and
/// those within a loop that is stepped: all that they may make would have to be told in each of its iterations. A body's
/// pieces of few nodes are left to be launched one by one.
/// Another piece begins with the launch `first_waiting`, if that is none of the first: behind copies that the run before has left.
/// Everything outlives the pieces.
ProgramPieces cut_program(const std::shared_ptr<Context>& context, const ProgramParts& parts,
                          LaunchKinds& kinds, std::span<const RecordedLaunch> launches,
                          size_t first_waiting = 0);

}  // namespace fullbore::cuda
