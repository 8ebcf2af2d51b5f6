#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/pgn_reader.h"
#include "workloads/chess/puzzles.h"
#include "workloads/chess/san.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchFolder;

std::vector<PgnGame> games_of(const std::string& text) {
  ScratchFolder folder;
  folder.put("games.pgn", text);
  Result<PgnReader> reader = PgnReader::open(folder / "games.pgn");
  EXPECT_TRUE(reader.ok());
  std::vector<PgnGame> games;
  PgnGame game;
  while (reader.ok()) {
    const Result<bool> more = reader.value().next(game);
    EXPECT_TRUE(more.ok()) << more.error();
    if (!more.ok() || !more.value()) break;
    games.push_back(game);
    const std::string path = folder / "";
    if (const size_t at = game.problem.find(path); at == 0)
      games.back().problem = game.problem.substr(path.size());
  }
  return games;
}

std::string moves_of(const PgnGame& game) {
  std::string text;
  for (const PgnMove& each : game.moves) text += (text.empty() ? "" : " ") + uci_text(each.move);
  return text;
}

TEST(Pgn, AGameAsServersWriteIt) {
  const std::vector<PgnGame> games = games_of(
      "[Event \"Rated Blitz game\"]\n[Site \"https://example.org/a\"]\n[White \"A \\\"B\\\" \\\\ "
      "C\"]\n[Black \"an \"unescaped\" \\ name\"]\n"
      "[Result \"1-0\"]\n[TimeControl \"180+2\"]\n\n"
      "1. e4 { [%eval 0.24] [%clk 0:03:00] } 1... e5 { [%eval -1.5,18] [%clk 0:02:58.5] } "
      "2. Bc4 Nc6?! 3. Qh5?! Nf6?? { [%eval #1] } 4. Qxf7# { [%clk 1:00:00] } 1-0\n");
  ASSERT_EQ(games.size(), 1U);
  const PgnGame& game = games[0];
  EXPECT_EQ(game.problem, "");
  EXPECT_EQ(game.tags.size(), 6U);
  EXPECT_EQ(game.tag("White"), "A \"B\" \\ C");
  EXPECT_EQ(game.tag("Black"), "an \"unescaped\" \\ name");
  EXPECT_EQ(game.tag("Round"), "");
  EXPECT_EQ(moves_of(game), "e2e4 e7e5 f1c4 b8c6 d1h5 g8f6 h5f7");
  EXPECT_EQ(game.result, "1-0");
  EXPECT_EQ(game.moves[0].clock, 180);
  EXPECT_EQ(game.moves[1].clock, 178.5);
  EXPECT_EQ(game.moves[1].evaluation, -1.5);
  EXPECT_EQ(game.moves[5].evaluation, 999);
  EXPECT_EQ(game.moves[5].clock, std::nullopt);
  EXPECT_EQ(game.moves[6].clock, 3600);
  EXPECT_EQ(game.line, 1);
}

// Byte order mark, CRLF, Latin-1, escape and rest-of-line comments, nested variations with comments that hold brackets,
// NAGs, moves without a space behind their number, zeros for O, marks of all kinds.
TEST(Pgn, OdditiesOfFiles) {
  const std::vector<PgnGame> games = games_of(
      "\xef\xbb\xbf% made by hand\r\n[Event \"M\xfcnchen\"]\r\n[White\t\"Zo\xc3\xab\" ]\r\n[Empty "
      "\"\"][Two \"of a line\"]\r\n\r\n"
      "{before } 1.e4 $1 e5!! ; a ) comment } to the end\r\n"
      "% [Event \"no\"]\r\n"
      "2.Ng1-f3 (2. f4 exf4 (2... d5 {here ) and ( there}) 3. Nf3 *) 2...Nb8c6 {[%clk "
      "0:01]\r\nover lines }\r\n"
      "3 . Bb5 +- 3... Nge7 N 4. 0-0 a6 \xb1 \r\n");
  ASSERT_EQ(games.size(), 1U);
  EXPECT_THAT(games[0].problem,
              HasSubstr("games.pgn:10: move 5: '\\xb1' is malformed in r1bqkb1r/"));
  EXPECT_EQ(games[0].tag("Event"), "M\xc3\xbcnchen");
  EXPECT_EQ(games[0].tag("White"), "Zo\xc3\xab");
  EXPECT_EQ(games[0].tag("Two"), "of a line");
  EXPECT_EQ(moves_of(games[0]), "e2e4 e7e5 g1f3 b8c6 f1b5 g8e7 e1g1 a7a6");
  EXPECT_EQ(games[0].moves[3].clock, 1);
}

// One broken game costs itself alone.
TEST(Pgn, ProblemsEndWithTheirGame) {
  const std::vector<PgnGame> games = games_of(
      "[Event \"1\"]\n\n1. e4 e5 2. Ke3 d5 1-0\n\n"
      "[Event \"2\"]\n\n1. d4 {never closed\n\n[Event \"3\"]\n\n1. c4 (1. d4 1/2-1/2\n\n"
      "[Event \"4\"]\n[Site broken]\n\n1. d4 *\n\n[Event \"5\"]\n[FEN \"8/8 w - - 0 1\"]\n\n1. Ka1 "
      "*\n"
      "[Event \"6\"]\n[Event \"7\"]\n\n1. Nf3 Nf6 2. -- *\n\n1. e4 1/2\n[Event \"8\"]\n\n1. d4 0-1 "
      "d5\n");
  std::vector<std::string> problems, moves, results;
  for (const PgnGame& game : games) {
    problems.push_back(game.problem.substr(0, game.problem.find(" in ")));
    moves.push_back(moves_of(game));
    results.push_back(game.result);
  }
  EXPECT_THAT(
      problems,
      ElementsAre("games.pgn:3: move 2: 'Ke3' is not legal", HasSubstr("a comment was left open"),
                  HasSubstr("a variation was left open"),
                  "games.pgn:14: expected [Name \"value\"], found '[Site broken]'",
                  HasSubstr("games.pgn:19: FEN: field 1 (pieces): expected eight ranks"), "",
                  "games.pgn:25: move 2: '--' is malformed", "",
                  "games.pgn:30: 'd5' stands behind the result"));
  EXPECT_THAT(moves,
              ElementsAre("e2e4 e7e5", "d2d4", "c2c4", "", "", "", "g1f3 g8f6", "e2e4", "d2d4"));
  EXPECT_THAT(results, ElementsAre("1-0", "*", "*", "*", "*", "*", "*", "1/2-1/2", "0-1"));
}

TEST(Pgn, OtherFilesAreRefused) {
  ScratchFolder folder;
  folder.put("wide.pgn", std::string("\xff\xfe[\0E\0", 6));
  PgnGame game;
  Result<PgnReader> wide = PgnReader::open(folder / "wide.pgn");
  EXPECT_THAT(wide.value().next(game).error(), HasSubstr("wide.pgn: is UTF-16"));
  EXPECT_FALSE(PgnReader::open(folder / "absent.pgn").ok());
  EXPECT_THAT(games_of(""), IsEmpty());
  EXPECT_THAT(games_of("\n\n% nothing\n; here\n"), IsEmpty());
}

TEST(San, ReadsAndWrites) {
  const struct {
    const char *fen, *uci, *san;
    std::vector<const char*> others;
  } rows[] = {
      {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", "O-O", {"0-0", "o-o", "Kg1", "O-O!?"}},
      {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", "O-O-O", {"0-0-0", "e8c8", "Ke8-c8"}},
      {"4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1c1", "O-O-O", {}},
      {"3k4/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1c1", "O-O-O+", {"O-O-O"}},
      {"n1n5/PPPk4/8/8/8/8/4Kppp/5N1N w - - 0 1",
       "b7a8q",
       "bxa8=Q",
       {"bxa8Q", "ba8q", "b7xa8(Q)", "bxa8/Q"}},
      {"n1n5/PPPk4/8/8/8/8/4Kppp/5N1N w - - 0 1", "b7b8b", "b8=B", {"b8B"}},
      {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
       "e5d6",
       "exd6",
       {"exd6 e.p.", "exd6ep", "e5xd6", "e5:d6"}},
      {"4k3/8/8/8/8/2N3N1/8/4K3 w - - 0 1", "c3e4", "Nce4", {"Nc3e4", "Nc3-e4", "c3e4"}},
      {"4k3/8/8/1N6/8/1N6/8/4K3 w - - 0 1", "b3d4", "N3d4", {"Nb3d4"}},
      {"7k/8/3N1N2/8/3N4/8/8/4K3 w - - 0 1", "d6e4", "Nde4", {}},
      {"7k/8/8/1N3N2/8/1N3N2/8/4K3 w - - 0 1", "b3d4", "Nb3d4", {}},
      {"4k3/8/8/8/8/8/4r3/R3K2R w KQ - 0 1", "e1e2", "Kxe2", {"Ke2", "K:e2"}},
      {"6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "a1a8", "Ra8#", {"Ra8", "Ra8+", "Ra8++!!"}},
      // The knight of c3 is pinned, so that the other needs no file.
      {"4k3/8/8/8/1b6/2N3N1/8/4K3 w - - 0 1", "g3e4", "Ne4", {"Nge4"}},
  };
  for (const auto& [fen, uci, san, others] : rows) {
    Position position;
    ASSERT_EQ(parse_fen(fen, position), FenError::kNone) << fen;
    const std::optional<Move> move = parse_uci_move(uci);
    EXPECT_TRUE(is_legal(position, *move)) << fen << uci;
    Move read;
    EXPECT_EQ(san_text(position, *move), san) << fen;
    std::vector<const char*> texts = others;
    texts.push_back(san);
    for (const char* text : texts) {
      EXPECT_EQ(parse_san(position, text, read), SanError::kNone) << fen << ' ' << text;
      EXPECT_EQ(read, *move) << fen << ' ' << text;
    }
  }
  Position two;
  ASSERT_EQ(parse_fen("7k/8/3N1N2/8/3N4/8/8/4K3 w - - 0 1", two), FenError::kNone);
  Move read{1, 2};
  EXPECT_EQ(parse_san(two, "Ne4", read), SanError::kAmbiguous);
  for (const char* text :
       {"", "N", "e", "e9", "Ne", "Nxe4x", "=Q", "(", ")", "O-O-O-O", "--", "Z0", "e4e4e4"})
    EXPECT_EQ(parse_san(start_position(), text, read), SanError::kMalformed) << text;
  for (const char* text : {"e5", "O-O", "Bc4", "e4=Q", "exd3", "Ke2"})
    EXPECT_EQ(parse_san(start_position(), text, read), SanError::kIllegal) << text;
  EXPECT_EQ(read, (Move{1, 2})) << "touched";
}

TEST(Puzzles, AreScoredMoveByMove) {
  const std::vector<PgnGame> games = games_of(
      "[Event \"mate in two\"]\n[FEN \"6k1/5ppp/8/8/8/8/8/RR2K3 w - - 0 1\"]\n\n1. Rb7 h6 2. Ra8+ "
      "Kh7 *\n"
      "[Event \"mate\"]\n[FEN \"6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1\"]\n\n1. Ra8# 1-0\n"
      "[Event \"no puzzle\"]\n\n1. e4 *\n[Event \"?\"]\n[FEN \"6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 "
      "1\"]\n\n1. Ra9 1-0\n");
  std::vector<Puzzle> puzzles;
  for (const PgnGame& game : games)
    if (const std::optional<Puzzle> puzzle = puzzle_of(game)) puzzles.push_back(*puzzle);
  ASSERT_EQ(puzzles.size(), 2U);
  EXPECT_EQ(puzzles[0].name, "mate in two");
  const auto score = [&](const std::vector<std::vector<std::string>>& rounds) {
    size_t round = 0;
    return score_puzzles(puzzles, [&](std::span<const Position> positions) {
      EXPECT_EQ(positions.size(), rounds[round].size());
      return rounds[round++];
    });
  };
  const PuzzleScore all = score({{"b1b7", "a1a8"}, {"a1a8"}});
  EXPECT_EQ(all.solved, 2);
  EXPECT_EQ(all.moves, 3);
  const PuzzleScore some = score({{"b1b7", "a1a9"}, {"a1a7"}});
  EXPECT_EQ(some.puzzles, 2);
  EXPECT_EQ(some.first_move, 1);
  EXPECT_EQ(some.solved, 0);
  EXPECT_EQ(some.illegal_moves, 1);
  // Another mate than that of the line is as good.
  EXPECT_EQ(score({{"a1a8", "a1a8"}}).solved, 2);
}

}  // namespace
}  // namespace fullbore::chess
