#pragma once
#include <functional>
#include <string>
#include <vector>

#include "workloads/chess/engine_pool.h"
#include "workloads/chess/piped_program.h"

namespace fullbore::chess {

/// Why an engine is of no use any more.
enum class EngineTrouble {
  none,
  silent,   ///< a deadline passed
  died,     ///< it ended or closed its output
  refused,  ///< it said what no engine can say
  stopped   ///< the pool ends
};

/// One engine in conversation. After any trouble only destroy it.
class EngineProcess {
 public:
  /// Starts it, greets it and sets its options. Failure: what went wrong, with the program's path. `is_stopped` is asked
  /// while it waits, here and later.
  static Result<EngineProcess> start(const EngineOptions& options,
                                     const std::function<bool()>& is_stopped);

  /// As `id name` has it.
  const std::string& name() const { return name_; }
  /// The best moves of a position that is not over. `trouble` says what to do about a Failure.
  EngineAnalysis analyse(const std::string& fen, EngineTrouble& trouble);
  /// Asks it to end, for at most so long.
  void quit(std::chrono::milliseconds patience);

 private:
  EngineProcess(PipedProgram process, const EngineOptions& options,
                const std::function<bool()>& is_stopped)
      : process_(std::move(process)), options_(&options), is_stopped_(&is_stopped) {}
  /// Waits for a line for which `take` returns true.
  EngineTrouble wait_for(const std::function<bool(std::string_view)>& take, double seconds);
  std::string greet();

  PipedProgram process_;
  const EngineOptions* options_;
  const std::function<bool()>* is_stopped_;
  std::string name_ = "unnamed";
};

/// What makes two answers the same: the engine's name, its settings and its limits.
std::string analysis_settings(const EngineOptions& options, const std::string& engine_name);

}  // namespace fullbore::chess
