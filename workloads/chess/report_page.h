#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/lab/runs/run_curves.h"
#include "workloads/chess/chess_record.h"
#include "workloads/chess/record_score.h"

namespace fullbore::chess {

/// An answer of a trained model.
struct ReportedAnswer {
  size_t record = 0;  ///< which of the records that were asked
  RecordScore score;
  std::string text;  ///< any bytes
  double advantage = 0;
};

/// All that the page of a run shows.
struct ChessReport {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< a name and a value each
  RunCurves curves;
  double smooth = 0;  ///< chart_curve()
  std::vector<ChessRecord> records;
  std::vector<ReportedAnswer> answers;  ///< to them, group after group; none: they were not asked
  size_t shown = 4;                     ///< best answers with their boards, and as many worst ones
};

/// Charts of the metrics that the run has: rewards, rules, best moves, the way from the reference, entropy, clipping,
/// lengths, losses, and where the time goes. SVG documents.
std::vector<std::string> report_charts(const RunCurves& curves, double smooth);

/// Indices of the answers with the largest rewards, largest first, or the least, least first: one of each record, ties in
/// the order given.
std::vector<size_t> extreme_answers(std::span<const ReportedAnswer> answers, bool best,
                                    size_t most);

/// One HTML document without script, style sheets, pictures or fonts of others; texts of models and runs are escaped.
std::string report_page(const ChessReport& report);

}  // namespace fullbore::chess
