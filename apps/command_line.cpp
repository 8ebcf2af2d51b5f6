#include "apps/command_line.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <vector>

#include "apps/commands.h"
#include "apps/version.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr const char* kAbout =
    "Fullbore trains neural networks as one compiled program: traced once, planned to the byte,\n"
    "replayed a million times.";

constexpr const char* kFooter = R"(
Example:
  fullbore train configs/gpt-shakespeare-cpu.yaml data.path=play.txt
  fullbore generate runs/gpt-1 --prompt "ROMEO:"

Each command has a --help of its own.

Exit codes:
   0  done
   1  a bug of fullbore
   2  usage: command line, configuration, shapes
   3  data: a file that is missing, malformed, or of another model
   4  numerical: the loss or the gradients stopped being finite
   5  memory: the job does not fit
  75  stopped by a signal after saving; run again with --resume)";

int exit_with(ExitCode code, const std::string& message) {
  fmt::print(stderr, "fullbore: {}\n", message);
  return static_cast<int>(code);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// A first word that names no command gets a better answer here than from the parser.
void check_command_name(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  const std::vector<std::string> names = command_names(app);
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  throw UsageError(fmt::format("there is no command '{}'.{} The commands are {}.", argv[1],
                               did_you_mean(argv[1], names), fmt::join(names, ", ")));
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The parser's complaint, with the command's name and, for an unknown option, the nearest one.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* innermost = &app;
  std::string name;  // "data tokenize"
  while (!innermost->get_subcommands().empty()) {
    innermost = innermost->get_subcommands().front();
    name += (name.empty() ? "" : " ") + innermost->get_name();
  }
  const CLI::App& command = *innermost;
  const std::string prefix = name.empty() ? "" : name + ": ";
  const std::string see = fmt::format(" See 'fullbore{} --help'.", name.empty() ? "" : " " + name);
  const std::vector<std::string> extras = app.remaining(true);
  const std::vector<std::string> below = command_names(command);
  if (!below.empty() && !name.empty())
    return fmt::format("{}{}{} The subcommands are {}.{}", prefix,
                       extras.empty() ? "a subcommand was expected."
                                      : fmt::format("there is no subcommand '{}'.", extras.front()),
                       extras.empty() ? "" : did_you_mean(extras.front(), below),
                       fmt::join(below, ", "), see);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    const std::string word = extras.front().substr(0, extras.front().find('='));
    return fmt::format("{}unexpected argument '{}'.{}{}", prefix, extras.front(),
                       did_you_mean(word, option_names(command)), see);
  }
  return fmt::format("{}{}.{}", prefix, error.what(), see);
}

int parse_and_run(CLI::App& app, const ChosenCommand& chosen, int argc, const char* const* argv) {
  if (argc < 2) {
    fmt::print(stderr, "{}\n", app.help());
    return static_cast<int>(ExitCode::kUsage);
  }
  check_command_name(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    throw UsageError(explain(app, error));
  }
  return static_cast<int>(chosen());
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  try {
    CLI::App app(kAbout, "fullbore");
    app.set_version_flag("--version", version_text,
                         "Print the version, and what it was built with");
    app.require_subcommand(1);
    app.footer(kFooter);
    ChosenCommand chosen;
    add_train_command(app, chosen);
    add_eval_command(app, chosen);
    add_generate_command(app, chosen);
    add_export_command(app, chosen);
    add_data_command(app, chosen);
    add_metrics_command(app, chosen);
    add_replay_step_command(app, chosen);
    add_plan_command(app, chosen);
    add_bench_command(app, chosen);
    add_profile_command(app, chosen);
    add_doctor_command(app, chosen);
    add_ops_command(app, chosen);
    add_passes_command(app, chosen);
    add_config_command(app, chosen);
    add_completion_command(app, chosen);
    add_manual_command(app, chosen);
    return parse_and_run(app, chosen, argc, argv);
  } catch (const Error& error) {
    return exit_with(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return exit_with(ExitCode::kMemory, "out of memory");
  } catch (const std::exception& error) {
    return exit_with(ExitCode::kInternal, fmt::format("a bug of ours: {}", error.what()));
  }
}

}  // namespace fullbore
