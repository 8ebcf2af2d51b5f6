#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/file_lines.h"
#include "workloads/chess/position.h"

namespace fullbore::chess {

/// A half-move of a game, and what the comments behind it tell.
struct PgnMove {
  Move move;
  std::optional<double> clock;       ///< [%clk 1:02:03.4], of the mover, in seconds
  std::optional<double> evaluation;  ///< [%eval 0.35], in pawns for White; mate in n is (1000 - n)
};

/// A game of a PGN file: its main line.
struct PgnGame {
  std::vector<std::pair<std::string, std::string>> tags;  ///< in UTF-8, in the order of the file
  bool has_start = false;                                 ///< it has a FEN tag
  Position start;
  std::vector<PgnMove> moves;
  std::string result = "*";  ///< "1-0", "0-1", "1/2-1/2" or "*"
  int64_t line = 0;          ///< where it begins
  /// Why it is not whole: "games.pgn:12: move 3: 'Nf9' is malformed in FEN". `moves` end before; empty: it is whole.
  std::string problem;

  /// Empty if there is none of that name.
  std::string_view tag(std::string_view name) const;
};

/// Games of a PGN file one after the other, in memory of one game. Variations, NAGs, comments, lines that begin with %
/// and a byte order mark are read over; lines may end in CRLF; texts that are not UTF-8 are Latin-1. A new game begins
/// with a tag behind moves, or with another Event tag, even within a comment or a variation that was left open.
/// Source: Edwards, Portable Game Notation Specification.
class PgnReader {
 public:
  static constexpr size_t kMostMoves = 20'000;  ///< of a game
  static constexpr size_t kMostTags = 1'000;    ///< of a game, within kMostTagBytes together
  static constexpr size_t kMostTagBytes = size_t{1} << 20;

  /// Failure: as FileLines::open.
  static Result<PgnReader> open(const std::string& path);

  /// The next game, perhaps with a problem; false at the end. Failure: the file cannot be read, is UTF-16, or has a line of
  /// more than FileLines::kMostBytes.
  Result<bool> next(PgnGame& game);

 private:
  explicit PgnReader(FileLines lines) : lines_(std::move(lines)) {}

  void read_line(PgnGame& game, std::string_view text);
  bool read_tag(PgnGame& game, std::string_view& text);
  void read_word(PgnGame& game, std::string_view word);
  void play(PgnGame& game, std::string_view word);
  void finish(PgnGame& game);
  bool begins_game(const PgnGame& game, std::string_view text) const;
  void report(PgnGame& game, const std::string& problem);
  void reset(PgnGame& game);

  FileLines lines_;
  bool pending_ = false;  // lines_.line() is the first of the next game
  // Of the game that is being read.
  Position position_;
  std::string comment_;
  size_t tag_bytes_ = 0;
  int variations_ = 0;
  bool in_comment_ = false, has_movetext_ = false, ended_ = false;
};

}  // namespace fullbore::chess
