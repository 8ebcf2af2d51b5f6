#pragma once
#include "fullbore/app/command.h"

namespace fullbore::energy_flow {

/// `energy translate`: texts through the bridge, and through the lattice where there is one, to texts.
void add_translate_command(Command energy);

}  // namespace fullbore::energy_flow
