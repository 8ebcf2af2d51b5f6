#pragma once
#include <string>

#include "fullbore/lab/ablation/ablation.h"
#include "fullbore/lab/quality/quality_metric.h"
#include "fullbore/lab/tuning/tuning_bench.h"

namespace fullbore {

/// Searches, and then measures what was found beside the defaults: an ablation in the folder confirm/, of the start, of all that was
/// taken and, where some of that changes numbers, of the rest alone. What is not faster there beyond its interval, or whose quality
/// is not shown to be no worse where it changes numbers, is declined: then all stays as it was.
///
/// `identity`: of the machine, the build, the job and what is asked; a folder of another is refused. All that is finished is kept in the folder; stopped or
/// killed, it goes on with `resume`.
///
/// UsageError: a folder that holds a tuning already, or one to go on with without any; as search_tuning() and tuning_space() have
/// it. DataError: the folder cannot be written, the disk is full, the job cannot be run.
Tuning tune(const TuningRequest& request, const std::string& identity,
            const QualityMetrics& quality, const StopRequest& stop, const TellDoing& progress);

/// What the confirmation found, as it changes the result: trials, verdicts of rows and what is taken.
void conclude_tuning(Tuning& tuning, std::vector<TuningTrial> trials);

}  // namespace fullbore
