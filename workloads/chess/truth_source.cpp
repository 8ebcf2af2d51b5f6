#include "workloads/chess/truth_source.h"

#include <algorithm>
#include <utility>

namespace fullbore::chess {

PendingTruth TruthSource::begin(const ChessRecord& record) {
  PendingTruth pending;
  pending.source_ = this;
  pending.record_ = record;
  if (engines_ && record.task == ChessTask::policy)
    pending.analysis_ = engines_->submit(record.fen);
  return pending;
}

Result<RecordTruth> PendingTruth::get() {
  if (analysis_) {
    const EngineAnalysis& analysis = analysis_->get();
    record_.top.clear();
    if (analysis.ok()) {
      record_.top = analysis.value();
    } else {
      const std::lock_guard lock(source_->mutex_);
      if (source_->problem_.empty()) source_->problem_ = analysis.error();
    }
    const double limit = source_->eval_limit_;
    for (RankedMove& each : record_.top) each.eval = std::clamp(each.eval, -limit, limit);
  }
  if (record_.task == ChessTask::policy && record_.top.empty()) ++source_->unranked_;
  return RecordTruth::create(record_, source_->options_);
}

std::string TruthSource::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace fullbore::chess
