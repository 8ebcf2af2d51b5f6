#include <gmock/gmock.h>

#include <optional>
#include <sstream>
#include <utility>

#include "workloads/chess/chess_model.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/tests/commands/chess_training.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

class LegalAnswers : public ChessTraining {};

// A model that knows next to nothing lists legal moves alone where nothing else can be drawn.
TEST_F(LegalAnswers, MovesAreDrawnFromLegalOnesWhereThatIsWanted) {
  warm_up();
  CommandResult result =
      command({"chess", "prepare", "--records", "20", "--truth", "search:1", "--out", "asked"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<ChessRecord> records = read_all_records(folder_ / "asked").take_or_throw();
  ChessModel model(folder_ / "warm", 16);
  const auto count_moves = [&](bool legal_moves) {
    int legal = 0, illegal = 0;
    for (const ModelAnswer& answer :
         model.answer(records, {.temperature = 1, .samples = 4, .legal_moves = legal_moves})) {
      Position position;
      EXPECT_EQ(parse_fen(records[answer.prompt].fen, position), FenError::kNone);
      // Words with white space behind them: the last one may be cut off.
      std::istringstream words(answer.text.substr(0, answer.text.find_last_of(" \n") + 1));
      for (std::string word; words >> word && !word.starts_with("E:");) {
        const std::optional<Move> move = parse_uci_move(word);
        ++(move && is_legal(position, *move) ? legal : illegal);
      }
    }
    return std::pair(legal, illegal);
  };
  EXPECT_GT(count_moves(true).first, 0);
  EXPECT_EQ(count_moves(true).second, 0);
  EXPECT_GT(count_moves(false).second, 0);
  result = command({"chess", "eval", "warm", "--data", "asked", "--legal-moves"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("legality says nothing of the model"));
}

}  // namespace
}  // namespace fullbore::chess
