#include "workloads/chess/answer_measures.h"

#include <array>
#include <map>
#include <set>
#include <string_view>

namespace fullbore::chess {
namespace {

double share(double sum, int64_t of) { return of == 0 ? 0 : sum / static_cast<double>(of); }
double share(int64_t count, int64_t of) { return share(static_cast<double>(count), of); }

struct LegalCounts {
  int64_t positions = 0;
  std::map<std::string, int64_t> legal = {};

  /// The first by its text of those that are legal most often.
  ConstantMove most() const {
    ConstantMove best;
    int64_t count = 0;
    for (const auto& [move, times] : legal)
      if (times > count) {
        best.move = move;
        count = times;
      }
    best.legal = share(count, positions);
    return best;
  }
};

/// PolicyMeasures::distinct_best, told one move at a time.
class DistinctMoves {
 public:
  void add(std::string move) {
    moves_.insert(std::move(move));
    if (++answers_ < kDistinctOf) return;
    shares_ += share(std::ssize(moves_), answers_);
    ++whole_;
    moves_.clear();
    answers_ = 0;
  }
  double mean() const {
    return whole_ > 0 ? share(shares_, whole_) : share(std::ssize(moves_), answers_);
  }

 private:
  std::set<std::string> moves_;
  int64_t answers_ = 0;
  int64_t whole_ = 0;
  double shares_ = 0;
};

bool is_white(const ChessRecord& record) { return record.fen.find(" w ") != std::string::npos; }

}  // namespace

PolicyMeasures measure_policy(std::span<const ScoredAnswer> answers) {
  PolicyMeasures sum;
  DistinctMoves best_moves;
  std::set<std::string_view> completions;
  for (const ScoredAnswer& answer : answers) {
    if (answer.score.task != ChessTask::policy) continue;
    const PolicyScore& score = answer.score.policy;
    ++sum.answers;
    sum.format += score.format_valid;
    sum.legal_best += score.best_legal;
    sum.legal_moves += score.legal_share;
    sum.best_move += score.best_is_first;
    sum.top_moves += score.best_in_top;
    sum.eval_error += score.eval_error * static_cast<double>(score.eval_errors);
    sum.eval_errors += score.eval_errors;
    sum.reward += score.reward;
    completions.insert(answer.completion);
    if (score.best_move) best_moves.add(uci_text(*score.best_move));
  }
  for (double* each : {&sum.format, &sum.legal_best, &sum.legal_moves, &sum.best_move,
                       &sum.top_moves, &sum.reward})
    *each = share(*each, sum.answers);
  sum.eval_error = share(sum.eval_error, sum.eval_errors);
  sum.distinct_best = best_moves.mean();
  sum.unique_completions = share(static_cast<int64_t>(completions.size()), sum.answers);
  return sum;
}

ArbiterMeasures measure_arbiter(std::span<const ScoredAnswer> answers) {
  ArbiterMeasures sum;
  std::set<std::string_view> completions;
  for (const ScoredAnswer& answer : answers) {
    if (answer.score.task != ChessTask::arbiter) continue;
    const ArbiterScore& score = answer.score.arbiter;
    ++sum.answers;
    sum.format += score.format_valid;
    sum.exact += score.exact;
    sum.core += score.core;
    sum.similarity += score.similarity;
    sum.flags += score.terminated_right && score.truncated_right;
    sum.reward_right += score.reward_right;
    sum.reward += score.reward;
    completions.insert(answer.completion);
  }
  for (double* each : {&sum.format, &sum.exact, &sum.core, &sum.similarity, &sum.flags,
                       &sum.reward_right, &sum.reward})
    *each = share(*each, sum.answers);
  sum.unique_completions = share(static_cast<int64_t>(completions.size()), sum.answers);
  return sum;
}

PolicyBaselines policy_baselines(std::span<const ChessRecord> records,
                                 const RewardOptions& options) {
  PolicyBaselines baselines;
  LegalCounts all;
  std::array<LegalCounts, 2> by_colour;
  std::vector<const ChessRecord*> used;
  std::vector<RecordTruth> truths;
  for (const ChessRecord& record : records) {
    if (record.task != ChessTask::policy) continue;
    Result<RecordTruth> truth = RecordTruth::create(record, options);
    if (!truth.ok()) continue;
    LegalCounts& own = by_colour[is_white(record) ? 0 : 1];
    ++all.positions;
    ++own.positions;
    for (const Move move : truth.value().policy().legal) {
      const std::string text = uci_text(move);
      ++all.legal[text];
      ++own.legal[text];
    }
    used.push_back(&record);
    truths.push_back(std::move(truth).value());
  }
  baselines.positions = all.positions;
  baselines.always = all.most();
  baselines.white = by_colour[0].most();
  baselines.black = by_colour[1].most();
  const auto earn = [&](ConstantMove& constant, const auto& concerns) {
    if (constant.move.empty()) return;
    const std::string answer = " " + constant.move + " E: 0.0 B: " + constant.move;
    int64_t positions = 0;
    for (size_t i = 0; i < used.size(); ++i) {
      if (!concerns(*used[i])) continue;
      ++positions;
      constant.reward += score_policy("M:", answer, truths[i].policy(), options).reward;
    }
    constant.reward = share(constant.reward, positions);
  };
  earn(baselines.always, [](const ChessRecord&) { return true; });
  earn(baselines.white, [](const ChessRecord& record) { return is_white(record); });
  earn(baselines.black, [](const ChessRecord& record) { return !is_white(record); });
  baselines.by_colour =
      share(baselines.white.legal * static_cast<double>(by_colour[0].positions) +
                baselines.black.legal * static_cast<double>(by_colour[1].positions),
            all.positions);
  return baselines;
}

CopyBaseline copy_baseline(std::span<const ChessRecord> records, const RewardOptions& options) {
  CopyBaseline sum;
  for (const ChessRecord& record : records) {
    if (record.task != ChessTask::arbiter) continue;
    const Result<RecordTruth> truth = RecordTruth::create(record, options);
    if (!truth.ok()) continue;
    const ArbiterScore score =
        truth.value().score(answer_text({record.fen, 0.001, false, false})).arbiter;
    ++sum.answers;
    sum.reward += score.reward;
    sum.exact += score.exact;
    sum.similarity += score.similarity;
  }
  for (double* each : {&sum.reward, &sum.exact, &sum.similarity}) *each = share(*each, sum.answers);
  return sum;
}

}  // namespace fullbore::chess
