#pragma once
#include "fullbore/app/command.h"

namespace fullbore {

/// `peptide generate`: synthetic spectra as a file.
void add_peptide_generate(Command peptide);

}  // namespace fullbore
