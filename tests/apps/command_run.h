#pragma once
#include <sys/types.h>

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

/// Runs the real binary with these arguments in `folder`. `while_running`, if set, is called every
/// few milliseconds with its process id. Fails the test and kills the process after two minutes.
CommandResult run_command(const std::string& folder, const std::vector<std::string>& arguments,
                          const std::function<void(pid_t)>& while_running = {});

/// The same on a terminal of `columns` columns: all that it wrote is in `out`.
CommandResult run_command_on_terminal(const std::string& folder,
                                      const std::vector<std::string>& arguments, int columns);

/// Contents of every file below a folder by relative path: to see that nothing was touched.
std::map<std::string, std::string> folder_contents(const std::string& folder);

}  // namespace fullbore
