#include "workloads/chess/engine_process.h"

#include <fmt/format.h>

#include "fullbore/base/excerpt.h"
#include "fullbore/data/text_lines.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/uci_analysis.h"

namespace fullbore::chess {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes that an engine may say about one position.
constexpr size_t kMostOutput = size_t{16} << 20;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

const char* trouble_text(EngineTrouble trouble) {
  switch (trouble) {
    case EngineTrouble::none: break;
    case EngineTrouble::silent: return "it says nothing in time";
    case EngineTrouble::died: return "it ended";
    case EngineTrouble::refused: return "it talks without end";
    case EngineTrouble::stopped: return "the pool ends";
  }
  return "nothing is wrong";
}

std::string limit_text(const EngineOptions& options) {
  return options.depth > 0 ? fmt::format("depth {}", options.depth)
                           : fmt::format("nodes {}", options.nodes);
}

}  // namespace

std::string analysis_settings(const EngineOptions& options, const std::string& engine_name) {
  std::string text =
      fmt::format("{}; {}; MultiPV {}", engine_name, limit_text(options), options.moves);
  for (const auto& [name, value] : options.settings) text += fmt::format("; {} {}", name, value);
  return text;
}

Result<EngineProcess> EngineProcess::start(const EngineOptions& options,
                                           const std::function<bool()>& is_stopped) {
  Result<PipedProgram> started = PipedProgram::start(options.path);
  if (!started.ok()) return Failure{started.error()};
  EngineProcess engine(std::move(started).value(), options, is_stopped);
  if (const std::string problem = engine.greet(); !problem.empty())
    return Failure{fmt::format("{} {}", options.path, problem)};
  return engine;
}

std::string EngineProcess::greet() {
  process_.write("uci\n", after(options_->start_seconds));
  EngineTrouble trouble = wait_for(
      [&](std::string_view line) {
        if (line.starts_with("id name ")) name_ = excerpt(trimmed(line.substr(8)), 80);
        return trimmed(line) == "uciok";
      },
      options_->start_seconds);
  if (trouble != EngineTrouble::none)
    return fmt::format("does not answer 'uci' as a chess engine: {}", trouble_text(trouble));
  std::string words = fmt::format(
      "setoption name Threads value 1\nsetoption name MultiPV value {}\n", options_->moves);
  for (const auto& [name, value] : options_->settings)
    words += fmt::format("setoption name {} value {}\n", name, value);
  process_.write(words + "isready\n", after(options_->start_seconds));
  trouble = wait_for([](std::string_view line) { return trimmed(line) == "readyok"; },
                     options_->start_seconds);
  return trouble == EngineTrouble::none
             ? ""
             : fmt::format("does not answer 'isready': {}", trouble_text(trouble));
}

EngineTrouble EngineProcess::wait_for(const std::function<bool(std::string_view)>& take,
                                      double seconds) {
  const Clock::time_point deadline = after(seconds);
  size_t bytes = 0;
  for (;;) {
    std::string_view line;
    switch (process_.read_line(line, deadline, *is_stopped_)) {
      case LineWait::line: break;
      case LineWait::late: return EngineTrouble::silent;
      case LineWait::ended: return EngineTrouble::died;
      case LineWait::flooded: return EngineTrouble::refused;
      case LineWait::stopped: return EngineTrouble::stopped;
    }
    if (take(line)) return EngineTrouble::none;
    bytes += line.size() + 1;
    if (bytes > kMostOutput) return EngineTrouble::refused;
    // One that never stops talking is never waited for.
    if (Clock::now() >= deadline) return EngineTrouble::silent;
  }
}

EngineAnalysis EngineProcess::analyse(const std::string& fen, EngineTrouble& trouble) {
  Position position;
  trouble = EngineTrouble::none;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return Failure{describe_fen_error(error, fen)};
  UciAnalysis analysis(position, options_->moves);
  // A new game empties the hash table: the answer depends on nothing that was asked before.
  process_.write(fmt::format("ucinewgame\nposition fen {}\ngo {}\n", fen, limit_text(*options_)),
                 after(options_->answer_seconds));
  trouble = wait_for(
      [&](std::string_view line) {
        analysis.add(line);
        return UciAnalysis::is_end(line);
      },
      options_->answer_seconds);
  if (trouble != EngineTrouble::none) return Failure{trouble_text(trouble)};
  EngineAnalysis result = analysis.result();
  if (!result.ok()) trouble = EngineTrouble::refused;
  return result;
}

void EngineProcess::quit(std::chrono::milliseconds patience) {
  process_.write("quit\n", Clock::now() + patience);
  process_.end(patience);
}

}  // namespace fullbore::chess
