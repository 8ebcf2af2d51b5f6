#pragma once
#include "fullbore/app/command.h"

namespace fullbore {

void add_predict_command(Command root);
void add_peptide_command(Command root);

}  // namespace fullbore
