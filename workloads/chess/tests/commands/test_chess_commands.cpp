#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const OutputRows& rows() {
  static const OutputRows all = {{"chess perft", {{"chess", "perft", "start", "2"}}},
                                 {"chess fen", {{"chess", "fen", "start"}}},
                                 {"chess moves", {{"chess", "moves", "start"}}}};
  return all;
}

class ChessCommands : public OutputRowsTest {
 protected:
  ChessCommands() : OutputRowsTest(rows()) {}
  void prepare() override {}

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
}  // namespace fullbore
