// Any bytes as what a model wrote: no scheme throws, and every reward is in its range. What masks moves knows the same answers
// as legal as what scores them. The same as what an engine says: moves are legal, or there are none.
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/chess/arbiter_reward.h"
#include "workloads/chess/legal_move_text.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/policy_reward.h"
#include "workloads/chess/uci_analysis.h"

using namespace fullbore;
using namespace fullbore::chess;
using fullbore::testing::require;

namespace {

const std::string kFen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

bool is_within(double reward, double least, double most) {
  constexpr double kRounding = 1e-12;
  return reward >= least - kRounding && reward <= most + kRounding;
}

void read_as_engine(std::string_view text) {
  UciAnalysis analysis(start_position(), 3);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    analysis.add(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const Result<std::vector<RankedMove>> moves = analysis.result();
  if (!moves.ok()) return;
  require(moves.value().size() == 3);
  for (const RankedMove& each : moves.value()) {
    require(is_legal(start_position(), *parse_uci_move(each.move)));
    require(is_within(each.eval, -10000, 10000));
  }
}

void compare_legality(std::string_view text, const PolicyTruth& truth) {
  const PolicyScore score = score_policy("P: M:", text, truth);
  if (!score.format_valid) return;
  LegalMoveText read(start_position(), true);
  const bool is_legal = read.take(text) && read.may_end();
  // Beyond the moves that are looked at, shares are less than 1.
  if (is_legal) require(score.best_legal && score.legal_share > 0);
  if (score.best_legal && score.legal_share == 1) require(is_legal);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<RankedMove> top = {
      {"e2e4", .35}, {"d2d4", .30}, {"g1f3", .28}, {"c2c4", .20}, {"e2e3", .15}};
  static const PolicyTruth with_engine = policy_truth(kFen, top).take_or_throw();
  static const PolicyTruth without = policy_truth(kFen, {}).take_or_throw();
  static const ArbiterAnswer answer = arbiter_truth(kFen, "e2e4").take_or_throw();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const RewardScheme scheme :
       {RewardScheme::weighted, RewardScheme::graduated, RewardScheme::additive,
        RewardScheme::rank_decay, RewardScheme::cliff}) {
    RewardOptions options;
    options.scheme = scheme;
    const double least = scheme == RewardScheme::rank_decay ? -1 : kMalformedReward;
    const double most = scheme == RewardScheme::additive ? 2 : 1;
    for (const char* prompt : {"P: ", "P: M:"})
      for (const PolicyTruth* truth : {&with_engine, &without}) {
        const PolicyScore score = score_policy(prompt, text, *truth, options);
        require(is_within(score.reward, least, most));
        require(is_within(score.legal_share, 0, 1) && score.eval_error >= 0);
      }
    const ArbiterScore score = score_arbiter(text, answer, options);
    require(is_within(score.reward, scheme == RewardScheme::cliff ? -0.9 : kMalformedReward, 1.5));
    require(is_within(score.similarity, 0, 1) && (!score.exact || score.core));
  }
  compare_legality(text, without);
  read_as_engine(text);
  return 0;
}
