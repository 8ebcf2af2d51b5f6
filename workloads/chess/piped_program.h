#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::chess {

/// What came of waiting for a line of another program.
enum class LineWait {
  line,     ///< there is one
  late,     ///< the time is up
  ended,    ///< the program ended or closed its output
  flooded,  ///< a line is longer than PipedProgram::kMostLine
  stopped   ///< somebody asked to stop waiting
};

/// A program of its own whose standard input and output are pipes of ours; what it says on standard error is dropped. No
/// shell is between, and it has no environment, no other file of this process and "/" as its folder. It is killed when the
/// thread that started it ends, this process included.
class PipedProgram {
 public:
  static constexpr size_t kMostLine = size_t{1} << 16;  ///< bytes

  /// `arguments`: what follows the program's name. Failure: it is missing, no program, or the system starts no more.
  static Result<PipedProgram> start(const std::string& path,
                                    const std::vector<std::string>& arguments = {});
  PipedProgram(PipedProgram&& other) noexcept;
  PipedProgram& operator=(PipedProgram&& other) noexcept;
  ~PipedProgram();  ///< kills it where it still runs

  /// Writes all of it, waiting at most until `deadline`: false if the program takes it no more.
  bool write(std::string_view text, std::chrono::steady_clock::time_point deadline);
  /// The next line of its output without its end, valid until the next call. `is_stopped` is asked many times a second.
  template <class IsStopped>
  LineWait read_line(std::string_view& line, std::chrono::steady_clock::time_point deadline,
                     const IsStopped& is_stopped) {
    for (;;) {
      if (const LineWait taken = take_line(line); taken != LineWait::late) return taken;
      if (is_stopped()) return LineWait::stopped;
      if (std::chrono::steady_clock::now() >= deadline) return LineWait::late;
      wait_for_output(deadline);
    }
  }
  /// Closes its input and lets it end by itself for so long, then kills it.
  void end(std::chrono::milliseconds patience);
  pid_t id() const { return process_; }

 private:
  PipedProgram(pid_t process, int input, int output)
      : process_(process), input_(input), output_(output) {}
  LineWait take_line(std::string_view& line);
  void wait_for_output(std::chrono::steady_clock::time_point deadline) const;
  void close_pipes();

  pid_t process_ = -1;
  int input_ = -1;   ///< what we write
  int output_ = -1;  ///< what we read
  std::string buffer_;
  size_t begin_ = 0;  ///< of what has not been handed out
};

}  // namespace fullbore::chess
