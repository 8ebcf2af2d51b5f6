#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/uci_player.h"

namespace fullbore::chess {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class UciTest : public ::testing::Test {
 protected:
  UciTest()
      : front_({"test",
                {{"Temperature", "spin default 1 min 0 max 2",
                  [this](std::string_view value) {
                    temperature_ = value;
                    return std::string(value.empty() ? "expected a number" : "");
                  }},
                 {"Two Words", "string default",
                  [this](std::string_view value) {
                    words_ = value;
                    return std::string();
                  }}},
                [this](const Game&) { return next_; }},
               [this](std::string_view text) { said_ += text; }) {}

  /// What is said to a line.
  std::string to(std::string_view line) {
    said_.clear();
    open_ = front_.answer(line);
    return said_;
  }

  std::string next_ = "e2e4", said_, temperature_, words_;
  bool open_ = true;
  UciFront front_;
};

TEST_F(UciTest, Introduces) {
  EXPECT_EQ(to("uci"),
            "id name test\nid author the authors of Fullbore\n"
            "option name Temperature type spin default 1 min 0 max 2\n"
            "option name Two Words type string default\nuciok\n");
  EXPECT_EQ(to(" isready \r"), "readyok\n");
  EXPECT_EQ(to("quit"), "");
  EXPECT_FALSE(open_);
}

TEST_F(UciTest, Plays) {
  EXPECT_EQ(to("position startpos"), "");
  EXPECT_EQ(to("go wtime 1000 btime 1000 depth 5"), "bestmove e2e4\n");
  EXPECT_EQ(to("position startpos moves e2e4 e7e5"), "");
  EXPECT_EQ(front_.game().moves().size(), 2U);
  next_ = "g1f3";
  EXPECT_EQ(to("go movetime 10"), "bestmove g1f3\n");
  EXPECT_EQ(to("position fen 5k2/5P2/4K3/8/8/8/8/8 w - - 5 70 moves e6f6"), "");
  EXPECT_EQ(to("go"), "bestmove (none)\n") << "stalemate";
  EXPECT_EQ(to("ucinewgame"), "");
  EXPECT_EQ(front_.game().position(), start_position());
  EXPECT_EQ(front_.moves(), 2);
  EXPECT_EQ(front_.illegal_moves(), 0);
}

TEST_F(UciTest, HoldsItsMoveUntilItIsStopped) {
  EXPECT_EQ(to("go infinite"), "");
  EXPECT_EQ(to("isready"), "readyok\n");
  EXPECT_EQ(to("stop"), "bestmove e2e4\n");
  EXPECT_EQ(to("stop"), "");
  EXPECT_EQ(to("go ponder"), "");
  EXPECT_EQ(to("ponderhit"), "bestmove e2e4\n");
  EXPECT_EQ(to("go infinite"), "");
  EXPECT_EQ(to("go"), "bestmove e2e4\nbestmove e2e4\n") << "each go has its answer";
}

TEST_F(UciTest, ReplacesWhatIsNotLegal) {
  next_ = "e2e5";
  EXPECT_EQ(to("go"),
            "info string 'e2e5' is not legal; another move stands in for it\nbestmove a2a3\n");
  next_ = "\n\x1b[2J";
  EXPECT_THAT(to("go"), EndsWith("\nbestmove a2a3\n"));
  EXPECT_EQ(said_.find('\x1b'), std::string::npos);
  EXPECT_EQ(front_.illegal_moves(), 2);
  next_ = "e2e4";
  EXPECT_EQ(to("go searchmoves d2d4 c2c4 infinite"), "");
  EXPECT_EQ(to("stop"), "bestmove c2c4\n") << "legal, but not asked for";
  EXPECT_EQ(to("go searchmoves d2d4 e2e4"), "bestmove e2e4\n");
  EXPECT_EQ(front_.illegal_moves(), 2);
}

TEST_F(UciTest, JunkGetsNoAnswer) {
  for (const char* junk :
       {"", " ", "xyzzy", "ready", "debug on", "register later", "go2 stop2", "UCI"})
    EXPECT_EQ(to(junk), "") << junk;
  EXPECT_EQ(to("xyzzy joho isready"), "readyok\n") << "words that are no command are skipped";
}

TEST_F(UciTest, WhatIsWrongChangesNothing) {
  ASSERT_EQ(to("position startpos moves e2e4"), "");
  EXPECT_THAT(to("position fen 8/8 w - - 0 1"),
              HasSubstr("info string position: field 1 (pieces): expected"));
  EXPECT_THAT(to("position startpos moves e2e4 e2e4"),
              HasSubstr("'e2e4' is not legal in rnbqkbnr"));
  EXPECT_THAT(to("position startpos e2e4"), HasSubstr("expected moves, found 'e2e4'"));
  EXPECT_THAT(to("position"), HasSubstr("expected startpos or fen"));
  EXPECT_EQ(front_.game().moves().size(), 1U);
  EXPECT_EQ(to("setoption name temperature value 0.5"), "");
  EXPECT_EQ(temperature_, "0.5");
  EXPECT_EQ(to("setoption name Two Words value a b  "), "");
  EXPECT_EQ(words_, "a b");
  EXPECT_THAT(to("setoption name Temperature"), HasSubstr("Temperature: expected a number"));
  EXPECT_THAT(to("setoption name Hash value 16"), HasSubstr("there is no option 'Hash'"));
  EXPECT_THAT(to("setoption Hash 16"), HasSubstr("expected name"));
}

}  // namespace
}  // namespace fullbore::chess
