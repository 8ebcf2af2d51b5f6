#pragma once
#include <string>

#include "fullbore/lab/ablation/ablation_report.h"

namespace fullbore {

/// Pictures of a report as SVG elements, for a page whose style sheet has the classes base, better, worse, plain, grid and note.
/// Empty where there is nothing to show.

/// Speed of every arm against the base with its interval, on a logarithmic axis.
std::string speed_forest(const AblationReport& report);
/// The first metric against speed, a point for each arm.
std::string quality_against_speed(const AblationReport& report);
/// Milliseconds of a step along the ladder, a bar for each switch that is added; `reverse`: of the other ladder.
std::string ladder_waterfall(const AblationReport& report, bool reverse);
/// The first metric over seconds of training, of the base, the job as configured, all switches and the recommended arm.
std::string loss_curves(const AblationReport& report);

}  // namespace fullbore
