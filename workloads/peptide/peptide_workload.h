#pragma once
#include "fullbore/app/workload.h"

namespace fullbore {

/// model.name=peptide on synthetic spectra, or on measured ones where there is a data.path.
OpenedWorkload peptide_workload(const Config& config, Console& console, const StandIn& synthetic);

/// What such a run is judged by.
QualityMetrics peptide_quality(const Config& config);

}  // namespace fullbore
