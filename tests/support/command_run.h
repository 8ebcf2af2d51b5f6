#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fullbore {

/// How a run of the command ended. `exit_code` is 128 + n after signal n.
struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Waits for a process: its status, as of waitpid(). Fails the test and kills the process when it has not ended after
/// `limit`, of which a pause of the test itself is one second at most: whoever stops one for a while, a debugger or the
/// machine, stops the other too. `while_running`, if set, is called every few milliseconds with the process id.
int wait_at_most(pid_t child, std::chrono::seconds limit,
                 const std::function<void(pid_t)>& while_running = {});

/// Runs the real binary with these arguments in `folder`. `while_running`, if set, is called every
/// few milliseconds with its process id. Fails the test and kills the process after two minutes, ten with sanitizers.
CommandResult run_command(const std::string& folder, const std::vector<std::string>& arguments,
                          const std::function<void(pid_t)>& while_running = {});

/// The same on a terminal of `columns` columns: all that it wrote is in `out`.
CommandResult run_command_on_terminal(const std::string& folder,
                                      const std::vector<std::string>& arguments, int columns);

/// What a descriptor of the command is.
enum class Stream {
  kept,         ///< what is written to it can be read afterwards
  full,         ///< a device that is full
  closed_pipe,  ///< a pipe that nobody reads
  closed        ///< not open at all
};
struct CommandStreams {
  Stream out = Stream::kept;
  Stream err = Stream::kept;
  bool full_disk = false;        ///< no file can be written: RLIMIT_FSIZE is 0
  int64_t most_file_bytes = -1;  ///< larger files cannot be written: RLIMIT_FSIZE; less than 0: any
};
/// The same with other streams. What is kept may have a megabyte.
CommandResult run_command_with(const CommandStreams& streams, const std::string& folder,
                               const std::vector<std::string>& arguments);

/// Contents of every file below a folder by relative path: to see that nothing was touched.
std::map<std::string, std::string> folder_contents(const std::string& folder);

}  // namespace fullbore
