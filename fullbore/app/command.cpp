#include "fullbore/app/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "fullbore/app/command_tree.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription result;
  result.long_names = option.get_lnames();
  result.short_names = option.get_snames();
  if (option.get_positional()) result.positional = option.get_name(true, false);
  result.description = option.get_description();
  result.default_value = option.get_default_str();
  result.takes_value = option.get_items_expected_max() > 0;
  const std::string type = option.get_type_name();  // "FLOAT in [0 - 1]"
  result.takes_number =
      type.starts_with("FLOAT") || type.starts_with("INT") || type.starts_with("UINT");
  result.required = option.get_required();
  result.repeats = option.get_items_expected_max() > 1;
  return result;
}

CommandDescription describe_command(const CLI::App& command) {
  CommandDescription result{
      command.get_name(), command.get_description(), command.get_footer(), {}, {}};
  for (const CLI::Option* option : command.get_options())
    result.options.push_back(describe_option(*option));
  for (const CLI::App* inner : command.get_subcommands({}))
    result.subcommands.push_back(describe_command(*inner));
  return result;
}

/// The parser takes nan and inf for numbers, and bounds let NaN pass: it is neither below nor above. What is no
/// number at all is left to the parser.
std::string is_finite(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || std::isfinite(value)) return "";
  return fmt::format("'{}' is no finite number", text);
}

/// The parser takes -1 for the largest unsigned number, and the largest for what is larger.
std::string is_unsigned(const std::string& text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return "";
  return fmt::format("'{}' is no whole number from 0 to {}", text, UINT64_MAX);
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
  const std::string see =
      fmt::format(" See '{}{} --help'.", app.get_name(), name.empty() ? "" : " " + name);
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

}  // namespace

// --- options -------------------------------------------------------------------------------------

Option& Option::required() {
  option_->required();
  return *this;
}

template <typename Number>
Option& Option::between(Number least, Number most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
template Option& Option::between(int, int);
template Option& Option::between(int64_t, int64_t);
template Option& Option::between(double, double);

Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::one_value_each_time() {
  option_->allow_extra_args(false);
  return *this;
}

// --- commands ------------------------------------------------------------------------------------

Command Command::add_subcommand(const std::string& name, const std::string& description) {
  return {*app_->add_subcommand(name, description), *chosen_};
}

template <typename Value>
Option Command::add_option(const std::string& names, Value& place, const std::string& description) {
  CLI::Option& option = *app_->add_option(names, place, description);
  if constexpr (std::is_floating_point_v<Value>)
    option.check(std::function<std::string(const std::string&)>(is_finite));
  if constexpr (std::is_unsigned_v<Value> && !std::is_same_v<Value, bool>)
    option.check(std::function<std::string(const std::string&)>(is_unsigned));
  return Option(option);
}
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, int64_t&, const std::string&);
template Option Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&,
                                    const std::string&);

void Command::add_flag(const std::string& names, bool& place, const std::string& description) {
  app_->add_flag(names, place, description);
}

// Examples are written for `fullbore`; a program of one's own shows itself in them.
void Command::footer(const std::string& text) {
  const CLI::App* program = app_;
  while (program->get_parent() != nullptr) program = program->get_parent();
  app_->footer(replace_all(text, "\n  fullbore ", "\n  " + program->get_name() + " "));
}

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::runs(Run run) {
  // The parser calls back while it is still at work: what a command throws shall not pass through it.
  app_->callback([chosen = chosen_, run = std::move(run)] { *chosen = run; });
}

CommandDescription Command::describe() const { return describe_command(*app_); }

// --- the parser ----------------------------------------------------------------------------------

CommandParser::CommandParser(const std::string& name, const std::string& description,
                             const std::function<std::string()>& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version, "Print the version, and what it was built with");
}

CommandParser::~CommandParser() = default;

Command CommandParser::root() { return {*app_, chosen_}; }

ExitCode CommandParser::run(int argc, const char* const* argv) {
  if (argc < 2) {
    write_message(app_->help() + '\n');
    return ExitCode::kUsage;
  }
  check_command_name(*app_, argc, argv);
  chosen_ = [] { return ExitCode::kOk; };
  parse(argc, argv);
  return chosen_();
}

void CommandParser::check(int argc, const char* const* argv) {
  check_command_name(*app_, argc, argv);
  parse(argc, argv);
}

void CommandParser::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      throw UsageError(explain(*app_, error));
    std::ostringstream text;
    app_->exit(error, text, text);  // what was asked for: help, version
    write_output(text.str());
  }
}

}  // namespace fullbore
