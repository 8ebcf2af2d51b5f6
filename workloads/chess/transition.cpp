#include "workloads/chess/transition.h"

#include <fmt/format.h>

#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

double reward_of(GameResult result) {
  if (result == GameResult::kOngoing) return 0.001;
  return result == GameResult::kCheckmate ? 1.0 : 0.5;
}

// As the corpora write them: 1.0, 0.5, 0.001, -1.0.
std::string reward_text(double reward) {
  const std::string text = fmt::format("{}", reward);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace

Transition transition(const Position& position, std::string_view move,
                      std::span<const uint64_t> keys) noexcept {
  Transition answer{.position = position};
  const std::optional<Move> parsed = parse_uci_move(move);
  if (!parsed || !is_legal(position, *parsed)) {
    answer.reward = -1.0;
    answer.truncated = true;
    return answer;
  }
  make_move(answer.position, *parsed);
  answer.result = game_result(answer.position, keys);
  answer.reward = reward_of(answer.result);
  answer.terminated = answer.result != GameResult::kOngoing;
  return answer;
}

std::string transition_text(const Transition& transition, EnPassantField field,
                            double illegal_reward) {
  const double reward = transition.truncated ? illegal_reward : transition.reward;
  return fmt::format("{}+{}+{:d}+{:d}", fen_text(transition.position, field), reward_text(reward),
                     transition.terminated, transition.truncated);
}

}  // namespace fullbore::chess
