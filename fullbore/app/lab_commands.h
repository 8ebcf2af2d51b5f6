#pragma once
#include "fullbore/app/command.h"

namespace fullbore {

/// Each adds one command of `fullbore lab`.
void add_lab_ablate_command(Command lab);
void add_lab_gate_command(Command lab);
void add_lab_sweep_command(Command lab);
void add_lab_tune_command(Command lab);

}  // namespace fullbore
