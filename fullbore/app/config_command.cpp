#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "fullbore/app/commands.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

void print_field(const ConfigField& field) {
  Config defaults;
  print_output("{}\n    {}\n    {}, default {}{}\n", field.key, field.meaning, field.expectation(),
               value_yaml(field, defaults), field.restriction());
  if (!field.example.empty()) print_output("    as '{}={}'\n", field.key, field.example);
}

// `what`: a key, a section, or "" for all.
ExitCode run_config(const std::string& what) {
  std::vector<std::string> known = config_sections();
  for (const std::string& key : config_keys()) known.push_back(key);
  bool any = false;
  for (const ConfigField& field : config_fields()) {
    if (!what.empty() && field.key != what && field.section() != what) continue;
    print_field(field);
    any = true;
  }
  if (!any)
    throw UsageError(fmt::format("config: there is no key or section '{}'.{} The sections are {}.",
                                 what, did_you_mean(what, known),
                                 fmt::join(config_sections(), ", ")));
  return ExitCode::kOk;
}

}  // namespace

void add_config_command(Command root) {
  Command command = root.add_subcommand("config", "Explain the keys of a configuration");
  auto what = std::make_shared<std::string>();
  command.add_option("KEY_OR_SECTION", *what, "Which; by default all");
  command.footer(
      "\nA configuration is a YAML file of these keys; each can also be given on the command line\n"
      "as section.key=value. Keys left out keep their defaults.\n\n"
      "Example:\n"
      "  fullbore config train\n"
      "  fullbore config optim.learning_rate");
  command.runs([what] { return run_config(*what); });
}

}  // namespace fullbore
