#pragma once
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/launch_kinds.h"
#include "fullbore/device/cuda/executor/program_walk.h"

namespace fullbore::cuda {

/// Cuts a program into graphs and loops that the host steps, and the bodies of these likewise. A graph takes as much as a
/// graph may hold, loops of known counts iteration by iteration; loops whose counts depend on data, and those that would
/// make more than 20 000 nodes in all, are stepped. A body's pieces of few nodes are left to be launched one by one.
/// Everything outlives the pieces.
ProgramPieces cut_program(const std::shared_ptr<Context>& context, const ProgramParts& parts,
                          LaunchKinds& kinds, std::span<const RecordedLaunch> launches);

}  // namespace fullbore::cuda
