#pragma once
#include <span>
#include <string>
#include <vector>

#include "fullbore/lab/runs/run_page.h"
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

/// Curves of the metrics that the run has, each with those it is read beside: rewards by task, legality, best moves, the way
/// from the reference, entropy, lengths. `smooth`: chart_curve().
PagePart learning_part(const RunCurves& curves, double smooth);

/// Histograms of rewards and advantages; the boards and texts of the best answers, `shown` of them, and of as many worst ones.
/// Arrows are the truth's first move, and the one that was answered.
PagePart answers_part(std::span<const ChessRecord> records, std::span<const ReportedAnswer> answers,
                      size_t shown);

/// Indices of the answers with the largest rewards, largest first, or the least, least first: one of each record, ties in
/// the order given.
std::vector<size_t> extreme_answers(std::span<const ReportedAnswer> answers, bool best,
                                    size_t most);

}  // namespace fullbore::chess
