#include "workloads/chess/chess_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/check.h"

namespace fullbore::chess {
namespace {

// Columns of the published corpus, in characters.
constexpr size_t kFenColumns = 90;
constexpr size_t kMoveColumns = 30;
constexpr size_t kEvalColumns = 40;

/// At least one space, or the labels behind it could not be told apart.
std::string padding(size_t written, size_t columns) {
  return std::string(written < columns ? columns - written : 1, ' ');
}

}  // namespace

RecordFormat published_format() { return {}; }

RecordFormat short_format() {
  return {.padded = false, .eval_decimals = 1, .eval_limit = 20, .history = 4};
}

std::string expanded_fen(std::string_view fen) {
  std::string text;
  const size_t board = std::min(fen.find(' '), fen.size());
  for (const char c : fen.substr(0, board)) {
    if (c >= '1' && c <= '8')
      text.append(static_cast<size_t>(c - '0'), '.');
    else
      text += c;
  }
  return text.append(fen.substr(board));
}

std::string compact_fen(std::string_view fen) {
  std::string text;
  const size_t board = std::min(fen.find(' '), fen.size());
  char empty = '0';
  const auto end_run = [&] {
    if (empty > '0') text += empty;
    empty = '0';
  };
  for (const char c : fen.substr(0, board)) {
    if (c == '.' && empty < '9') {
      ++empty;
      continue;
    }
    end_run();
    text += c;
  }
  end_run();
  return text.append(fen.substr(board));
}

std::string eval_text(double eval, const RecordFormat& format) {
  const double cut = std::clamp(eval, -format.eval_limit, format.eval_limit);
  std::string text = fmt::format("{:.{}f}", cut, format.eval_decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);
  return text;
}

std::string reward_text(double reward) {
  std::string text = fmt::format("{:.3f}", reward);
  // "0.500" -> "0.5", "1.000" -> "1.0".
  while (text.ends_with('0') && text[text.size() - 2] != '.') text.pop_back();
  return text;
}

std::string answer_text(const ArbiterAnswer& answer) {
  return fmt::format("{}+{}+{:d}+{:d}", answer.fen, reward_text(answer.reward), answer.terminated,
                     answer.truncated);
}

ChessRecord policy_prompt(std::string_view fen, const RecordFormat& format) {
  ChessRecord record;
  record.prompt =
      fmt::format("P: {}", format.expanded_board ? expanded_fen(fen) : std::string(fen));
  record.fen = fen;
  // Behind the FEN of a padded record the model goes on by itself.
  if (!format.padded)
    record.prompt += " M:";
  else if (format.force_prefix)
    record.prompt += padding(record.prompt.size() - 3, kFenColumns) + "M:";
  return record;
}

ChessRecord policy_record(std::string_view fen, std::vector<RankedMove> top,
                          std::span<const size_t> order, const RecordFormat& format) {
  FB_CHECK(order.size() == top.size() && !top.empty(), "{} of {}", order.size(), top.size());
  std::string moves, evals;
  for (const size_t index : order) {
    if (!moves.empty()) moves += ' ';
    moves += top[index].move;
    if (!evals.empty()) evals += ' ';
    evals += eval_text(top[index].eval, format);
  }
  ChessRecord record = policy_prompt(fen, format);
  if (format.padded) {
    moves += padding(moves.size(), kMoveColumns);
    evals += padding(evals.size(), kEvalColumns);
  } else {
    moves += ' ';
    evals += ' ';
  }
  record.completion = fmt::format(" {}E: {}B: {}", moves, evals, top.front().move);
  if (format.padded && !format.force_prefix)
    record.completion.insert(0, padding(record.prompt.size() - 3, kFenColumns) + "M:");
  // An answer can say no more than what is written: one that knows it all is to earn it all.
  for (RankedMove& each : top)
    each.eval = std::clamp(each.eval, -format.eval_limit, format.eval_limit);
  record.top = std::move(top);
  return record;
}

ChessRecord arbiter_record(std::string_view fen, std::string_view move,
                           std::span<const std::string> history, const ArbiterAnswer& answer,
                           const RecordFormat& format) {
  FB_CHECK(format.history >= 1, "{}", format.history);
  const size_t kept = std::min(history.size(), static_cast<size_t>(format.history - 1));
  std::string moves;
  for (const std::string& earlier : history.last(kept)) moves += earlier + ' ';
  moves += move;
  ChessRecord record;
  record.task = ChessTask::arbiter;
  record.prompt = fmt::format("A: {}+{}+{}+", fen, move, moves);
  record.completion = answer_text(answer);
  record.fen = fen;
  record.move = move;
  return record;
}

}  // namespace fullbore::chess
