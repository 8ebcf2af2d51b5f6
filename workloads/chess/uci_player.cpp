#include "workloads/chess/uci_player.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/excerpt.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kSpace = " \t\r\v\f";
constexpr size_t kMostHalfMoves = 20'000;  // of a game that is handed over

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// The next word, taken off.
std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  text.remove_prefix(word.size());
  return word;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool is_command(std::string_view word) {
  for (const char* each : {"uci", "isready", "ucinewgame", "position", "go", "stop", "ponderhit",
                           "setoption", "debug", "register", "quit"})
    if (word == each) return true;
  return false;
}

}  // namespace

UciFront::UciFront(UciPlayer player, std::function<void(std::string_view)> say)
    : player_(std::move(player)), say_(std::move(say)) {}

void UciFront::tell(const std::string& problem) const {
  say_(fmt::format("info string {}\n", problem));
}

bool UciFront::answer(std::string_view line) {
  std::string_view command = take_word(line);
  while (!command.empty() && !is_command(command)) command = take_word(line);
  if (command == "uci") {
    introduce();
  } else if (command == "isready") {
    say_("readyok\n");
  } else if (command == "ucinewgame") {
    game_ = Game();
  } else if (command == "position") {
    set_position(line);
  } else if (command == "setoption") {
    set_option(line);
  } else if (command == "go") {
    release();  // a window should have stopped it
    go(line);
  } else if (command == "stop" || command == "ponderhit") {
    release();
  }
  return command != "quit";
}

void UciFront::introduce() const {
  std::string text = fmt::format("id name {}\nid author the authors of Fullbore\n", player_.name);
  for (const UciOption& option : player_.options)
    text += fmt::format("option name {} type {}\n", option.name, option.type);
  say_(text + "uciok\n");
}

void UciFront::set_position(std::string_view rest) {
  const std::string_view kind = take_word(rest);
  Position position = start_position();
  if (kind == "fen") {
    std::string fen;
    for (int field = 0; field < 6; ++field) {
      fen += field > 0 ? " " : "";
      fen += take_word(rest);
    }
    if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
      return tell("position: " + describe_fen_error(error, fen));
  } else if (kind != "startpos") {
    return tell(fmt::format("position: expected startpos or fen, found '{}'", excerpt(kind)));
  }
  Game game(position);
  if (const std::string_view word = take_word(rest); !word.empty() && word != "moves")
    return tell(fmt::format("position: expected moves, found '{}'", excerpt(word)));
  for (std::string_view move = take_word(rest); !move.empty(); move = take_word(rest))
    if (game.moves().size() >= kMostHalfMoves || !game.play(move))
      return tell(fmt::format("position: '{}' is not legal in {}", excerpt(move),
                              fen_text(game.position())));
  game_ = std::move(game);
}

void UciFront::set_option(std::string_view rest) const {
  if (take_word(rest) != "name") return tell("setoption: expected name");
  const size_t value_at = rest.find(" value");
  const std::string_view name = trimmed(rest.substr(0, value_at));
  std::string_view value;
  if (value_at != std::string_view::npos) value = trimmed(rest.substr(value_at + 6));
  for (const UciOption& option : player_.options) {
    if (!same_name(option.name, name)) continue;
    if (const std::string problem = option.set(value); !problem.empty())
      tell(fmt::format("setoption: {}: {}", option.name, problem));
    return;
  }
  tell(fmt::format("setoption: there is no option '{}'", excerpt(name)));
}

void UciFront::go(std::string_view rest) {
  bool waits = false, only_some = false;
  MoveList allowed;
  const MoveList legal = legal_moves(game_.position());
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    waits |= word == "infinite" || word == "ponder";
    const std::optional<Move> move = parse_uci_move(word);
    if (only_some && move && legal.contains(*move) && !allowed.contains(*move)) allowed.push(*move);
    only_some = word == "searchmoves" || (only_some && move);
  }
  if (allowed.empty()) allowed = legal;
  if (legal.empty()) {
    held_ = "bestmove (none)\n";
  } else {
    ++moves_;
    const std::string text = player_.move(game_);
    std::optional<Move> move = parse_uci_move(text);
    if (!move || !legal.contains(*move)) {
      ++illegal_moves_;
      tell(fmt::format("'{}' is not legal; another move stands in for it", excerpt(text)));
    }
    if (!move || !allowed.contains(*move)) {
      allowed.sort();
      move = allowed[0];
    }
    held_ = fmt::format("bestmove {}\n", uci_text(*move));
  }
  if (!waits) release();
}

void UciFront::release() {
  if (!held_.empty()) say_(std::exchange(held_, {}));
}

}  // namespace fullbore::chess
