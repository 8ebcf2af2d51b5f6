#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fullbore {

struct CommandDescription;

/// The words in which the commands say what they take. CLI11 does the parsing, and command.cpp alone
/// includes it: its header costs each source that does seconds of compilation.

/// An option or an argument with a place of its own, in the making.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  /// Both included. Number: int, int64_t or double.
  template <typename Number>
  Option& between(Number least, Number most);
  Option& one_of(const std::vector<std::string>& values);
  /// --help tells what the variable holds now.
  Option& shows_default();
  /// For a list: --name A --name B, where otherwise --name A B is the same.
  Option& one_value_each_time();

 private:
  CLI::Option* option_;
};

/// A command or a subcommand of one: a reference to what a CommandParser owns.
class Command {
 public:
  using Run = std::function<ExitCode()>;

  Command(CLI::App& app, Run& chosen) : app_(&app), chosen_(&chosen) {}

  Command add_subcommand(const std::string& name, const std::string& description);
  /// `names`: "-o,--output", or "CONFIG" for an argument known by its place. Value: int, int64_t,
  /// uint64_t, double, std::string, an optional or a vector of std::string. `place` is written by the
  /// parser, so what runs() is given must keep it alive.
  template <typename Value>
  Option add_option(const std::string& names, Value& place, const std::string& description);
  /// `place` becomes true where the flag is given.
  void add_flag(const std::string& names, bool& place, const std::string& description);
  /// Explanation and examples, below the options in --help.
  void footer(const std::string& text);
  /// Exactly one.
  void require_subcommand();
  /// What the command does, once all arguments have been read.
  void runs(Run run);

  CommandDescription describe() const;

 private:
  CLI::App* app_;
  Run* chosen_;
};

/// The command line of a program.
class CommandParser {
 public:
  /// `version`: what --version prints.
  CommandParser(const std::string& name, const std::string& description,
                const std::function<std::string()>& version);
  ~CommandParser();
  CommandParser(const CommandParser&) = delete;
  CommandParser& operator=(const CommandParser&) = delete;

  /// The program itself: its subcommands are the commands.
  Command root();
  /// Reads the arguments and runs what they choose; its exit code. --help and --version are printed,
  /// and without arguments the help, to stderr. UsageError that names the command, the word that is
  /// wrong and the nearest right one.
  ExitCode run(int argc, const char* const* argv);
  /// The same without running anything.
  void check(int argc, const char* const* argv);

 private:
  void parse(int argc, const char* const* argv);

  std::unique_ptr<CLI::App> app_;
  Command::Run chosen_;
};

}  // namespace fullbore
