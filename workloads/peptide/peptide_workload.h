#pragma once
#include "fullbore/app/workload.h"

namespace fullbore {

/// model.name=peptide on synthetic spectra, or on measured ones where there is a data.path.
OpenedWorkload peptide_workload(const Config& config, Console& console, const StandIn& synthetic);

}  // namespace fullbore
