#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "fullbore/app/command_tree.h"
#include "fullbore/app/commands.h"
#include "fullbore/app/output.h"
#include "fullbore/app/version.h"
#include "fullbore/base/program_name.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

// man(7): backslashes and dashes are escaped, and a line must not begin with a control character.
std::string roff(const std::string& text) {
  std::string result = replace_all(replace_all(text, "\\", "\\e"), "-", "\\-");
  if (!result.empty() && (result[0] == '.' || result[0] == '\'')) result = "\\&" + result;
  return result;
}

std::string in_capitals(std::string text) {
  for (char& each : text)
    if (each >= 'a' && each <= 'z') each = static_cast<char>(each - 'a' + 'A');
  return text;
}

/// Text as it is written: an explanation of --help, whose lines are made for 80 columns.
std::string as_written(const std::string& text) {
  std::string result = ".nf\n";
  std::istringstream lines(text.substr(std::min(text.size(), text.find_first_not_of('\n'))));
  for (std::string line; std::getline(lines, line);) result += roff(line) + "\n";
  return result + ".fi\n";
}

std::string option_page(const OptionDescription& option) {
  std::string names;
  for (const std::string& name : option.short_names) names += fmt::format("\\fB\\-{}\\fR, ", name);
  for (const std::string& name : option.long_names)
    names += fmt::format("\\fB\\-\\-{}\\fR, ", roff(name));
  if (!option.positional.empty()) names = fmt::format("\\fI{}\\fR, ", roff(option.positional));
  names.resize(names.size() - 2);
  if (option.takes_value && option.positional.empty()) names += " \\fIVALUE\\fR";
  std::string text = fmt::format(".TP\n{}\n{}\n", names, roff(option.description));
  if (!option.default_value.empty())
    text += fmt::format("(default: {})\n", roff(option.default_value));
  return text;
}

std::string command_page(const CommandDescription& command, const std::string& above = "") {
  const std::string name = above + command.name;
  std::string text = fmt::format(".SS \"{} {}\"\n{}.\n", roff(program_name()), roff(name),
                                 roff(command.description));
  for (const OptionDescription& option : command.options)
    if (option.name() != "--help") text += option_page(option);
  text += ".PP\n" + as_written(command.footer);
  for (const CommandDescription& inner : command.subcommands)
    text += command_page(inner, name + " ");
  return text;
}

std::string configuration_page() {
  std::string text =
      ".SH CONFIGURATION\nA YAML file of sections and keys; every key can also be "
      "given as \\fIsection.key=value\\fR.\n";
  Config defaults;
  for (const ConfigField& field : config_fields())
    text += fmt::format(".TP\n\\fB{}\\fR\n{}: {} (default: {})\n", roff(field.key),
                        roff(field.meaning), roff(field.expectation()),
                        roff(value_yaml(field, defaults) + field.restriction()));
  return text;
}

ExitCode run_manual(const Command& root) {
  const CommandDescription about = root.describe();
  const std::string name = roff(program_name());
  std::string text = fmt::format(".TH \"{}\" 1 \"\" \"fullbore {}\" \"User commands\"\n",
                                 in_capitals(name), version());
  text += fmt::format(".SH NAME\n{} \\- trains neural networks as one compiled program\n", name);
  text += fmt::format(".SH SYNOPSIS\n.B {}\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n", name);
  text += ".SH DESCRIPTION\n" + as_written(about.description);
  text += ".SH COMMANDS\n";
  for (const CommandDescription& command : about.subcommands) text += command_page(command);
  text += configuration_page();
  text += ".SH EXAMPLES AND EXIT CODES\n" + as_written(about.footer);
  text += R"(.SH ENVIRONMENT
.TP
\fBFULLBORE_CACHE\fR
Folder of compiled plans and kernels, those of cards too, measured peaks and tokens; by default
\fI$XDG_CACHE_HOME/fullbore\fR or \fI~/.cache/fullbore\fR.
.TP
\fBFULLBORE_COMPILE_CACHE\fR
\fIoff\fR: plans and kernels are compiled anew and not kept, as by engine.cache=false.
.TP
\fBNO_COLOR\fR
If set, nothing is coloured.
)";
  print_output("{}", text);
  return ExitCode::kOk;
}

}  // namespace

void add_manual_command(Command root) {
  Command command = root.add_subcommand("manual", "Print the manual page");
  command.footer(
      "\nAll commands and all keys of a configuration, in the format of man.\n\n"
      "Example:\n"
      "  fullbore manual | man -l -");
  command.runs([root] { return run_manual(root); });
}

}  // namespace fullbore
