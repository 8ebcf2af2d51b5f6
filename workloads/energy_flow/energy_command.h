#pragma once
#include "fullbore/app/command.h"

namespace fullbore::energy_flow {

/// `fullbore energy convert|inspect|generate`: files of sentence embeddings.
void add_energy_command(Command root);

}  // namespace fullbore::energy_flow
