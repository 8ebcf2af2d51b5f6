#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const OutputRows& rows() {
  static const OutputRows all = {
      {"chess perft", {{"chess", "perft", "start", "2"}}},
      {"chess fen", {{"chess", "fen", "start"}}},
      {"chess moves", {{"chess", "moves", "start"}}},
      {"chess moves --svg",
       {{"chess", "moves", "start", "e2e4", "--svg", "board.svg"}, true, {"board.svg"}}},
      {"chess games", {{"chess", "games", "games.pgn"}}},
      {"chess prepare",
       {{"chess", "prepare", "--records", "3", "--truth", "search:1", "--out", "new.jsonl",
         "--held-out", "new.held", "--force"},
        true,
        {"new.jsonl", "new.held"}}},
      {"chess eval", {{"chess", "eval", "run", "--records", "1", "--temperature", "0"}}},
      {"chess play", {{"chess", "play", "run"}, false}},
      {"chess report",
       {{"chess", "report", "run", "--records", "1", "--samples", "1", "--out", "page.html",
         "--force"},
        true,
        {"page.html"}}},
      {"chess score",
       {{"chess", "score", "answers.jsonl", "--each", "new.scores", "--force"},
        true,
        {"new.scores"}}}};
  return all;
}

class ChessCommands : public OutputRowsTest {
 protected:
  ChessCommands() : OutputRowsTest(rows()) {}
  void prepare() override {
    ASSERT_EQ(command({"train", "job.yaml", "run.dir=run", "data.path=", "model.name=tiny_decoder",
                       "model.layers=1", "model.width=16", "model.heads=1", "model.context=256",
                       "model.vocabulary=257", "data.tokenizer=byte", "data.batching=chess",
                       "data.validation_fraction=0.2", "chess.records=30", "chess.truth=search:1",
                       "train.steps=1", "train.batch_size=2", "train.sample_characters=0"})
                  .exit_code,
              0);
    folder_.put("games.pgn", "1. e4 e5 1-0\n");
    folder_.put("answers.jsonl",
                R"({"task": "P", "prompt": "P: 8/8/8/8/8/k7/8/K6R w - - 0 1 M:", "completion": "",)"
                R"("fen": "8/8/8/8/8/k7/8/K6R w - - 0 1", "top": [["h1h8", 5]], "answer": "x"})");
  }

  /// The command with `input` as its standard input, and its exit code.
  std::pair<std::string, int> with_input(const std::string& arguments, const std::string& input) {
    folder_.put("input.txt", input);
    const std::string in = folder_ / "input.txt", out = folder_ / "output.txt";
    const std::string line =
        "cat '" + in + "' | '" + testing::command_path() + "' " + arguments + " > '" + out + "'";
    const int status =
        std::system(line.c_str());  // NOLINT(bugprone-command-processor,cert-env33-c)
    return {read("output.txt"), WEXITSTATUS(status)};
  }
};

TEST_F(ChessCommands, EachHasARow) { expect_rows_of_workloads(rows(), {"chess"}); }
TEST_F(ChessCommands, ToAFullDeviceIsNamed) { expect_full_device_named(); }
TEST_F(ChessCommands, ToAFullDiskIsNamed) { expect_full_disk_named(); }

TEST_F(ChessCommands, CountLeaves) {
  const CommandResult text = command({"chess", "perft", "start", "3", "--divide"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("a2a3: 380\na2a4: 420\n"));
  EXPECT_THAT(text.out, HasSubstr("nodes 8902 in "));
  const CommandResult result = command({"chess", "perft", "start", "2", "--json", "--divide"});
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["nodes"], 400);
  EXPECT_EQ(json["moves"]["e2e4"], 20);
}

TEST_F(ChessCommands, RefuseWhatIsNoPosition) {
  const CommandResult result =
      command({"chess", "perft", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1", "1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("FEN: field 2 (side to move): expected w or b, found 'x'"));
  EXPECT_EQ(command({"chess", "perft", "start", "-2"}).exit_code, 2);
  EXPECT_EQ(command({"chess", "moves", "-", "e2e4"}).exit_code, 2);
}

TEST_F(ChessCommands, PlayMovesAndSayHowTheGameStands) {
  const CommandResult mate = command({"chess", "moves", "start", "f2f3", "e7e5", "g2g4", "d8h4"});
  EXPECT_THAT(mate.out, HasSubstr("White to move, in check; checkmate\n0 legal moves\n"));
  EXPECT_THAT(mate.out, HasSubstr("4  . . . . . . P q\n"));
  const CommandResult illegal = command({"chess", "moves", "start", "e2e5"});
  EXPECT_EQ(illegal.exit_code, 2);
  EXPECT_THAT(illegal.err, HasSubstr("'e2e5' is not legal in rnbqkbnr/"));
  EXPECT_THAT(command({"chess", "moves", "start", "e4"}).err,
              HasSubstr("'e4' is no move such as e2e4 or e7e8q"));
}

TEST_F(ChessCommands, ReadGames) {
  folder_.put("games.pgn", "[Event \"a\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[Event \"b\"]\n\n1. e5 *\n");
  const CommandResult text = command({"chess", "games", "games.pgn"});
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_EQ(text.out,
            "games.pgn:7: move 1: 'e5' is not legal in "
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"
            "2 games, 3 half-moves, 1 with a problem\n       1 *\n       1 1-0\n");
  const CommandResult result = command({"chess", "games", "games.pgn", "--json"});
  const nlohmann::json game = nlohmann::json::parse(result.out.substr(0, result.out.find('\n')));
  EXPECT_THAT(game["moves"], ElementsAre("e2e4", "e7e5", "g1f3"));
  EXPECT_THAT(game["san"], ElementsAre("e4", "e5", "Nf3"));
  EXPECT_EQ(game["tags"]["Event"], "a");
  EXPECT_EQ(command({"chess", "games", "absent.pgn"}).exit_code, 3);
}

TEST_F(ChessCommands, ReadLinesOfStandardInput) {
  const auto [fens, code] =
      with_input("chess fen --ep always",
                 "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1\r\n8/8 w - - 0 1");
  EXPECT_EQ(code, 3);
  EXPECT_EQ(fens,
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1\n"
            "invalid: field 1 (pieces): expected eight ranks with / between, found '8/8'\n");
  const auto [games, other_code] =
      with_input("chess moves -",
                 "5k2/5P2/4K3/8/8/8/8/8 w - - 5 70 e6f6\n4k3/8/8/8/8/8/8/R3K3 w - - 0 1 a1a9\n"
                 "4k3/8/8/8/8/8/8/R3K2r w - - 100 80\n");
  EXPECT_EQ(other_code, 3);
  std::vector<nlohmann::json> lines;
  std::istringstream stream(games);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["result"], "stalemate");
  EXPECT_THAT(std::string(lines[1]["invalid"]), StartsWith("'a1a9' is no move"));
  EXPECT_THAT(lines[2]["moves"], ElementsAre("e1d2", "e1e2", "e1f2"));
  EXPECT_EQ(lines[2]["fifty_moves"], true);
  const auto [none, long_code] = with_input("chess fen 2> /dev/null", std::string(2 << 20, 'a'));
  EXPECT_EQ(long_code, 3);
  EXPECT_EQ(none, "");
}

}  // namespace
}  // namespace fullbore::chess
