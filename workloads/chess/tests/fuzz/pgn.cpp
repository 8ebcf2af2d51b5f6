// Any bytes as a PGN file: games whose moves are legal, in bounded memory, or a problem with its line.
#include "tests/fuzz/memory_file.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/pgn_reader.h"
#include "workloads/chess/puzzles.h"
#include "workloads/chess/san.h"

using namespace fullbore;
using namespace fullbore::chess;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  Result<PgnReader> reader = PgnReader::open(file.path());
  require(reader.ok());
  PgnGame game;
  int64_t line = 0;
  while (true) {
    const Result<bool> more = reader.value().next(game);
    if (!more.ok()) {
      require(!more.error().empty());
      return 0;
    }
    if (!more.value()) return 0;
    require(game.line > line || line == 0);
    line = game.line;
    require(game.problem.empty() || game.problem.starts_with(file.path() + ":"));
    Position position = game.start;
    for (const PgnMove& each : game.moves) {
      require(is_legal(position, each.move));
      Move again;
      require(parse_san(position, san_text(position, each.move), again) == SanError::kNone);
      require(again == each.move);
      make_move(position, each.move);
    }
    if (const std::optional<Puzzle> puzzle = puzzle_of(game)) require(!puzzle->line.empty());
  }
}
