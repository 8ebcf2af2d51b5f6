#pragma once
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/result.h"
#include "workloads/chess/chess_record.h"

namespace fullbore::chess {

struct EngineOptions {
  std::string path;       ///< of the program; "": find_stockfish()
  int64_t processes = 0;  ///< 0: as many as there are processors
  int64_t depth = 4;      ///< in half-moves; 0: by nodes
  int64_t nodes = 0;
  int64_t moves = 5;  ///< of each position, best first (MultiPV)
  /// UCI options by name, set before the first position. Of every engine besides: Threads 1, MultiPV. The hash table is
  /// emptied before each position, so that a small one is the faster.
  std::vector<std::pair<std::string, std::string>> settings = {{"Hash", "1"},
                                                               {"Use NNUE", "false"}};
  double answer_seconds = 10;  ///< in which a position is analysed, or the engine is replaced
  double start_seconds = 10;   ///< in which it greets
  int64_t attempts = 4;        ///< per position
  double back_off_seconds =
      0.1;  ///< before the second start in a row; doubled by each further one, at most 5 s
  std::string cache_path;  ///< the file of analysis_cache.h; "": in memory alone
};

struct EngineCounts {
  int64_t positions = 0;  ///< asked for
  int64_t cached = 0;     ///< of them found in the cache
  int64_t analysed = 0;
  int64_t failed = 0;  ///< given up after all attempts
  int64_t retries = 0;
  int64_t starts = 0;   ///< of processes, first ones included
  int64_t silent = 0;   ///< deadlines passed
  int64_t died = 0;     ///< ended or closed its output while it was asked
  int64_t refused = 0;  ///< answers that no analysis of the position can be
  bool operator==(const EngineCounts&) const = default;
};

/// The best moves of a position, best first, or why there are none.
using EngineAnalysis = Result<std::vector<RankedMove>>;

/// Chess engines as processes of their own that speak UCI over pipes, asked from a queue: analyses run while the caller
/// does something else. A search ends by depth or nodes, never by time, from an empty hash table, so that its answer is
/// the same in every process and run. An engine that dies, hangs or says what no engine can say costs a retry and a
/// count. After eight positions in a row that it gave up, one in five seconds is asked, and the others fail at once. The
/// processes have no file and no environment of ours, and end with this one.
/// Source of the protocol: S. Meyer-Kahlen, R. Huber, "UCI protocol", 2006.
class EnginePool {
 public:
  /// Starts the engines, and waits until the first of them greets.
  /// DataError: there is no such program (of Stockfish, with the Debian package), it speaks no UCI, or the cache's
  /// folder cannot be made. UsageError: an option out of range.
  explicit EnginePool(EngineOptions options);
  ~EnginePool();  ///< positions that nobody has analysed yet fail; engines are told to quit, then killed
  EnginePool(const EnginePool&) = delete;
  EnginePool& operator=(const EnginePool&) = delete;

  /// Any thread. Never waits for an analysis; a position that is being analysed already is not analysed twice.
  std::shared_future<EngineAnalysis> submit(const std::string& fen);

  EngineCounts counts() const;
  const std::string& engine_name() const;  ///< as `id name` has it, such as "Stockfish 15.1"
  /// What is wrong with the file of the cache, a sentence each, once.
  std::vector<std::string> take_notices();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

/// Where Debian and others put it: the first of a few fixed paths that is there, else "".
std::string find_stockfish();
/// "there is no Stockfish: apt install stockfish, or ..."
std::string stockfish_missing_text();

}  // namespace fullbore::chess
