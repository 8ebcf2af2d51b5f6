#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "fullbore/app/commands.h"
#include "fullbore/app/output.h"
#include "fullbore/app/watch_screen.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/run_frame.h"
#include "fullbore/train/run_directory.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

constexpr int kRefreshMilliseconds = 500;

struct WatchArguments {
  std::string run;
  bool once = false;
};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// train.steps of the run's configuration; 0 where that cannot be read.
int64_t total_steps(const std::string& run) {
  try {
    return load_stored_config(run + '/' + RunDirectory::kConfig, {}, ForeignModels::read)
        .config.train.steps;
  } catch (const Error&) {
    return 0;  // of another version, say: the view goes without a bar
  }
}

ExitCode watch_once(RunView& view) {
  Console terminal(STDOUT_FILENO);
  FrameSize size{.columns = terminal.width(), .rows = 40};
  for (const std::string& line :
       run_frame(view, size, {.colour = false, .unicode = terminal.style().unicode},
                 seconds_since_1970()))
    print_output("{}\n", line);
  return ExitCode::kOk;
}

ExitCode run_watch(const WatchArguments& arguments) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(arguments.run))
    throw DataError(fmt::format("there is no run {}", arguments.run));
  if (!fs::exists(arguments.run + '/' + RunDirectory::kConfig))
    throw DataError(
        fmt::format("{} is no run: it has no {}", arguments.run, RunDirectory::kConfig));
  RunView view(arguments.run, total_steps(arguments.run));
  while (view.update()) continue;
  if (arguments.once || isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1)
    return watch_once(view);
  {
    WatchScreen screen;
    while (!view.is_gone()) {
      FrameSize size = screen.size();
      --size.rows;
      screen.draw(run_frame(view, size, screen.style(), seconds_since_1970()),
                  "q quits; the run goes on");
      if (!screen.goes_on(kRefreshMilliseconds)) break;
      while (view.update()) continue;
    }
  }
  if (view.is_gone()) print_output("{} was removed\n", arguments.run);
  return ExitCode::kOk;
}

}  // namespace

void add_watch_command(Command root) {
  Command command =
      root.add_subcommand("watch", "Show a run while it goes on, in the whole terminal");
  auto arguments = std::make_shared<WatchArguments>();
  command.add_option("RUN", arguments->run, "A run directory").required();
  command.add_flag("--once", arguments->once, "Print one page of text instead");
  command.footer(R"(
Where the run stands, curves of training and validation loss, sensors, what the time of a run that is over went
to, and its last alarms. It reads the run's files as they grow, from any terminal, and changes none of them.
q, Escape and Ctrl-C leave; the run goes on. Where standard output is no terminal, one page is printed.

Example:
  fullbore watch runs/default-1
  fullbore watch runs/default-1 --once
  NO_COLOR=1 fullbore watch runs/default-1

Exit codes: 0, also where the run is removed meanwhile, which is said; 2 a terminal that cannot be drawn on;
3 there is no such run.)");
  command.runs([arguments] { return run_watch(*arguments); });
}

}  // namespace fullbore
