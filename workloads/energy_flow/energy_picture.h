#pragma once
#include "fullbore/app/command.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/run_directory.h"
#include "workloads/energy_flow/held_out_pairs.h"

namespace fullbore::energy_flow {

/// `energy picture`: what a trained lattice does with one pair.
void add_energy_picture_command(Command energy);

/// `flows.svg` in the folder of a run that is done, of the first of these pairs. Where it cannot be drawn, as for want of
/// memory, it says so: a picture is no reason for a run to fail.
void keep_picture(const RunDirectory& run, const PairRange& pairs, Console& console);

}  // namespace fullbore::energy_flow
