#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "workloads/peptide/objective.h"
#include "workloads/peptide/residues.h"
#include "workloads/peptide/synthetic.h"

namespace fullbore {

/// A configuration of model.name=peptide as the model, its loss and its data want it.

peptide::ResidueAlphabet peptide_alphabet(const Config& config);
/// For each symbol of an alphabet the id of the one among the others that means the same, whatever its name; or -1.
std::vector<int32_t> ids_among(const peptide::ResidueAlphabet& others,
                               const peptide::ResidueAlphabet& alphabet);
peptide::ModelSizes peptide_sizes(const Config& config);
peptide::ObjectiveOptions peptide_objective(const Config& config);
/// UsageError that names key and item, where a list holds something else than it should.
peptide::SyntheticOptions peptide_synthetic_options(const Config& config);
peptide::Curriculum peptide_curriculum(const Config& config);

/// The loss on the fields of workloads/peptide/spectrum_batch.h; label smoothing is of training alone.
LossFunction peptide_loss(const Config& config);

}  // namespace fullbore
