#pragma once
#include <string>
#include <vector>

#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/report_table.h"

namespace fullbore {

/// The report as tables: times and quality, costs, and what each metric is at equal steps, samples and time.
std::vector<ReportTable> ablation_tables(const AblationReport& report);
/// What stands above them: what was measured, by how many runs.
std::string ablation_headline(const AblationReport& report);
/// What stands below them, a paragraph each: what the instrument sees of nothing, what it could not have seen, arms that failed,
/// switches without effect, and the recommendation.
std::vector<std::string> ablation_notes(const AblationReport& report);

}  // namespace fullbore
