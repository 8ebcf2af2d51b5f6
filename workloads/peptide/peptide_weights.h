#pragma once
#include <string>
#include <vector>

#include "fullbore/train/config.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {

/// Of model.initialize_from between peptide models: settings by which the same tensors mean something else.
std::vector<std::string> peptide_weight_keys();
/// Tables of another alphabet or another number of slots: symbols that both know keep their rows and columns,
/// slots and steps their places. Slots and steps beyond those of the checkpoint with model.initialize_partial only.
std::vector<TableOrigins> peptide_weight_tables(const Config& config, const WeightSource& source);

}  // namespace fullbore
